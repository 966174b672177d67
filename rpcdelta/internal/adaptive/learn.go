package adaptive

// learnEvery is how many taken frames lie between those that are learned.
const learnEvery = 5

// schedule says at which distance's class each of those is learned, in turn.
var schedule = [7]uint8{2, 1, 2, 1, 0, 2, 1}

// learner is scratch of learning one frame.
type learner struct {
	p     past
	f     featureSet
	q     orient
	s     surprise
	class int
	slow  int // of the present group's flags: 2, later 3
}

// take learns frame n as the learner's class. Frames up to floor are not read.
func (t *learner) take(m *Model, l *live, known *Frames, n, floor int64) {
	v := look(known, n, floor)
	row := Row{Ints: v.ints(n)}
	row.Bytes, _ = v.bytes(n)
	d := classDistance[t.class]
	for b := n - d; b > n-2*d; b-- {
		if t.p.fill(&v, n, b) {
			t.row(m, l, &row)
			return
		}
	}
}

func (t *learner) row(m *Model, l *live, row *Row) {
	t.p.compare(row)
	t.s = surprise{}
	var last, bits changes
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := t.p.changesOf(g) | last | bits
		changed := x&movedNow != 0
		if g.counts {
			changed = t.counts(m, g, lg, row, changed)
		}
		t.slow = lg.age()
		odds := lg.w.odds(lg.bias[t.class], x)
		lg.w.learn(&lg.bias[t.class], x, flagStep(changed, odds, t.slow))
		last = toldBy(changed)
		switch g.form {
		case formBits:
			if changed {
				t.bits(m, l, g, row.Ints)
				bits = pressed
			}
		case formQuat:
			t.quat(m, l, g, row.Ints, changed)
		case formBytes:
			if changed {
				l.counters.blobs[g.index].learn(row.Bytes[g.blob], t.p.base[g.blob], t.p.prev[g.blob])
			}
		case formNumbers:
			t.numbers(m, l, g, row.Ints, changed)
		}
	}
}

// age counts a use and says how slowly a flag learns by now.
func (g *liveGroup) age() int {
	if g.seen > 16 {
		return 3
	}
	g.seen++
	return 2
}

// stepping is true of a counter that mostly steps.
func (g *liveGroup) stepping() bool { return g.steps > 2048 }

// counts learns how a counter counts, and says what its flag would be.
func (t *learner) counts(m *Model, g *group, lg *liveGroup, row *Row, moved bool) (changed bool) {
	stepped := m.steps(&t.p, g, row)
	was := lg.stepping()
	target := int16(0)
	if stepped && moved {
		target = 4096
	}
	lg.steps += (target - lg.steps) / 16
	if was {
		return !stepped
	}
	return moved
}

func (t *learner) bits(m *Model, l *live, g *group, ints []int32) {
	bi := g.index
	for k := range g.comps {
		c := &m.sets[g.first+k]
		o := uint32(t.p.b[c.at])
		recent := o ^ uint32(t.p.h1[c.at])
		v := uint32(ints[c.at]) ^ o
		for j := range c.wrap {
			adapt(&l.counters.bits[bi][o>>j&1|recent>>j&1<<1], v>>j&1 == 0)
			bi++
		}
	}
}

// adapt moves a chance towards what happened.
func adapt(p *uint16, yes bool) {
	if yes {
		*p += (65500 - *p) >> 4
	} else {
		*p -= *p >> 4
	}
}

func (t *learner) numbers(m *Model, l *live, g *group, ints []int32, changed bool) {
	var last changes
	any := false
	t.s.near = 0
	for k := range g.comps {
		i := g.first + k
		c, lc := &m.comps[i], &l.comps[i]
		y := wrapTo(int64(ints[c.at])-int64(t.p.b[c.at]), c.wrap)
		if changed && g.comps > 1 && (any || k < g.comps-1) {
			x := changes(t.p.moved[c.at]) | last
			odds := lc.flag.w.odds(lc.flag.bias, x)
			lc.flag.w.learn(&lc.flag.bias, x, flagStep(y != 0, odds, t.slow))
		}
		any = any || y != 0
		last = toldBy(y != 0)
		if y == 0 {
			lc.in[t.class].rest()
			continue
		}
		t.f.all(&t.p, ints, g, c, k)
		r := t.comp(m, l, g, i, y)
		if c.list >= 0 && t.class > 0 {
			l.lists[c.list].learn(ints[c.at], t.p.b[c.at], r)
		}
	}
}

func (t *learner) quat(m *Model, l *live, g *group, ints []int32, changed bool) {
	if !changed {
		for k := range g.comps {
			l.comps[g.first+k].in[t.class].rest()
		}
		return
	}
	const all = 3
	t.q.prepare(&t.p, ints, g, all)
	idx := int(ints[g.at]) & 3
	adapt(&l.counters.index[g.index][t.q.sure], idx == t.q.index)
	want := uint(all)
	if g.family == turned {
		want = 1
	}
	t.q.express(g, idx, want)
	t.s.near = 0
	for k := range g.comps {
		t.f = t.q.feats[k]
		t.comp(m, l, g, g.first+k, int64(ints[g.at+1+k])-t.q.hold[k])
	}
}
