package adaptive

// none is no class.
const none = classes

// schedule says which class learns at each taken frame, of a period of 21.
var schedule = [21]uint8{2, none, none, 1, none, none, 2, none, none, 1, none, none, 0, none, none, 2, none, none, 1, none, none}

// learner is scratch of one Take.
type learner struct {
	p     past
	f     featureSet
	q     orient
	class int
	slow  int // of the present group's flags: 2, 3, 4 as it is older
}

// take learns frame n as one class, or only counts it. Frames up to floor are
// not read.
func (t *learner) take(m *Model, l *live, h History, n, floor int64) {
	cl := schedule[l.taken%uint64(len(schedule))]
	l.taken++
	if cl == classes {
		return
	}
	t.class = int(cl)
	v := view{history: h, base: n, floor: floor}
	row := v.at(n)
	d := classDistance[cl]
	for b := n - d; b > n-2*d; b-- {
		if t.p.fill(&v, n, b) {
			t.row(m, l, row)
			return
		}
	}
}

func (t *learner) row(m *Model, l *live, row *Row) {
	var x changes
	var f flags
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x.of(&t.p, g)
		changed := t.changed(m, g, lg, row)
		t.slow = lg.age()
		odds := lg.w.odds(lg.bias[t.class], x, f)
		lg.w.learn(&lg.bias[t.class], x, f, flagStep(changed, odds, t.slow))
		f.push(changed)
		switch g.form {
		case formBits:
			if changed {
				t.bits(m, l, g, row.Ints)
			}
		case formQuat:
			t.quat(m, l, g, row.Ints, changed)
		case formBytes:
			if changed {
				l.counters.blobs[g.index].learn(row.Bytes[g.blob], t.p.base.Bytes[g.blob], t.p.prev.Bytes[g.blob])
			}
		case formNumbers:
			t.numbers(m, l, g, row.Ints, changed)
		}
	}
}

// age counts a use and says how slowly a flag learns by now.
func (g *liveGroup) age() int {
	slow := 2
	if g.seen > 8 {
		slow = 3
	}
	if g.seen > 64 {
		return 4
	}
	g.seen++
	return slow
}

// stepping is true of a counter that mostly steps.
func (g *liveGroup) stepping() bool { return g.steps > 2048 }

// changed says what the group's flag would be, and learns how it counts.
func (t *learner) changed(m *Model, g *group, lg *liveGroup, row *Row) bool {
	if g.form == formBytes {
		return string(row.Bytes[g.blob]) != string(t.p.base.Bytes[g.blob])
	}
	held := true
	for i := g.at; i < g.at+g.n; i++ {
		held = held && row.Ints[i] == t.p.b[i]
	}
	if !g.counts {
		return !held
	}
	stepped := true
	for k := range g.comps {
		c := &m.comps[g.first+k]
		stepped = stepped && row.Ints[c.at] == step(&t.p, c)
	}
	was := lg.stepping()
	target := int16(0)
	if stepped && !held {
		target = 4096
	}
	lg.steps += (target - lg.steps) / 16
	if was {
		return !stepped
	}
	return !held
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
		*p += (65500 - *p) >> 5
	} else {
		*p -= *p >> 5
	}
}

func (t *learner) numbers(m *Model, l *live, g *group, ints []int32, changed bool) {
	var x changes
	var f flags
	any := false
	for k := range g.comps {
		i := g.first + k
		c, lc := &m.comps[i], &l.comps[i]
		y := wrapTo(int64(ints[c.at])-int64(t.p.b[c.at]), c.wrap)
		if changed && g.comps > 1 && (any || k < g.comps-1) {
			x.at(&t.p, c.at)
			odds := lc.flag.w.odds(lc.flag.bias, x, f)
			lc.flag.w.learn(&lc.flag.bias, x, f, flagStep(y != 0, odds, t.slow))
		}
		any = any || y != 0
		f.push(y != 0)
		if y == 0 {
			lc.scale[t.class].rest()
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
			l.comps[g.first+k].scale[t.class].rest()
		}
		return
	}
	const all = 15
	t.q.prepare(&t.p, ints, g, all)
	idx := int(ints[g.at]) & 3
	adapt(&l.counters.index[g.index][t.q.sure], idx == t.q.index)
	want := uint(all)
	if g.family == turned {
		want = 1
	}
	t.q.express(g, idx, want)
	for k := range g.comps {
		t.f = t.q.feats[k]
		t.comp(m, l, g, g.first+k, int64(ints[g.at+1+k])-t.q.hold[k])
	}
}
