package adaptive

import "github.com/uplink-rpc/uplink/schema"

// learnEvery is the interval, in accepted frames, between frames that are learned.
const learnEvery = 5

// classSchedule is the class of distances of each frame that is learned, in turn.
var classSchedule = [7]uint8{2, 1, 2, 1, 0, 2, 1}

// learner is the scratch space of learning one frame.
type learner struct {
	refs      refFrames
	features  featureSet
	orient    orientation
	context   residualContext
	class     int
	flagShift int // learning rate of the current group's flags: 2, later 3
}

// frame learns frame n at the distance of the learner's class. Frames up to floor are not read.
func (t *learner) frame(m *Model, l *modelState, known *Frames, n, floor int64) {
	v := newView(known, n, floor)
	row := schema.Frame{Ints: v.ints(n)}
	row.Bytes, _ = v.bytes(n)
	d := classDistance[t.class]
	for b := n - d; b > n-2*d; b-- {
		if t.refs.load(&v, n, b) {
			t.row(m, l, &row)
			return
		}
	}
}

// row learns a row whose reference frames are loaded.
func (t *learner) row(m *Model, l *modelState, row *schema.Frame) {
	t.refs.compare(row)
	t.context = residualContext{}
	var last, buttons flagInputs
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := t.refs.groupInputs(g) | last | buttons
		changed := x&frameChanged != 0
		if g.counter {
			changed = t.counter(m, g, lg, row, changed)
		}
		t.flagShift = lg.flagShift()
		p := lg.w.probability(lg.bias[t.class], x)
		lg.w.learn(&lg.bias[t.class], x, flagStep(changed, p, t.flagShift))
		last = lastFlagInput(changed)
		switch g.form {
		case formBits:
			if changed {
				t.bits(m, l, g, row.Ints)
				buttons = buttonsChanged
			}
		case formQuat:
			t.quat(m, l, g, row.Ints, changed)
		case formBytes:
			if changed {
				l.bitModels.bytes[g.index].learn(row.Bytes[g.blob], t.refs.refBytes[g.blob], t.refs.prevBytes[g.blob])
			}
		case formNumbers:
			t.numbers(m, l, g, row.Ints, changed)
		}
	}
}

// flagShift counts a use of the group's flag and returns the learning rate, see [flagStep].
func (g *groupState) flagShift() int {
	if g.uses > 16 {
		return 3
	}
	g.uses++
	return 2
}

// steps reports whether a counter usually continues at its last rate.
func (g *groupState) steps() bool { return g.stepRate > 2048 }

// counter learns whether a counter continues at its last rate, and returns its flag. moved reports
// whether it differs from its reference.
func (t *learner) counter(m *Model, g *group, lg *groupState, row *schema.Frame, moved bool) (changed bool) {
	follows := m.followsStep(&t.refs, g, row)
	steps := lg.steps()
	target := int16(0)
	if follows && moved {
		target = 4096
	}
	lg.stepRate += (target - lg.stepRate) / 16
	if steps {
		return !follows
	}
	return moved
}

func (t *learner) bits(m *Model, l *modelState, g *group, ints []int32) {
	bi := g.index
	for k := range g.numComps {
		c := &m.bitSets[g.firstComp+k]
		ref := uint32(t.refs.ref[c.at])
		recent := ref ^ uint32(t.refs.h1[c.at])
		flips := uint32(ints[c.at]) ^ ref
		for j := range c.wrap {
			adaptProb(&l.bitModels.bits[bi][ref>>j&1|recent>>j&1<<1], flips>>j&1 == 0)
			bi++
		}
	}
}

// adaptProb moves a probability towards the outcome.
func adaptProb(p *uint16, yes bool) {
	if yes {
		*p += (65500 - *p) >> 4
	} else {
		*p -= *p >> 4
	}
}

func (t *learner) numbers(m *Model, l *modelState, g *group, ints []int32, changed bool) {
	var last flagInputs
	any := false
	t.context.near = 0
	for k := range g.numComps {
		i := g.firstComp + k
		c, lc := &m.components[i], &l.components[i]
		y := wrapTo(int64(ints[c.at])-int64(t.refs.ref[c.at]), c.wrap)
		if changed && g.numComps > 1 && (any || k < g.numComps-1) {
			x := flagInputs(t.refs.diffs[c.at]) | last
			p := lc.flag.w.probability(lc.flag.bias, x)
			lc.flag.w.learn(&lc.flag.bias, x, flagStep(y != 0, p, t.flagShift))
		}
		any = any || y != 0
		last = lastFlagInput(y != 0)
		if y == 0 {
			lc.classes[t.class].decay()
			continue
		}
		t.features.compute(&t.refs, ints, g, c, k)
		r := t.component(m, l, g, i, y)
		if c.list >= 0 && t.class > 0 {
			l.lists[c.list].learn(ints[c.at], t.refs.ref[c.at], r)
		}
	}
}

func (t *learner) quat(m *Model, l *modelState, g *group, ints []int32, changed bool) {
	if !changed {
		for k := range g.numComps {
			l.components[g.firstComp+k].classes[t.class].decay()
		}
		return
	}
	const all = 3
	t.orient.predict(&t.refs, ints, g, all)
	idx := int(ints[g.at]) & 3
	adaptProb(&l.bitModels.index[g.index][t.orient.ambiguity], idx == t.orient.index)
	want := uint(all)
	if g.family == familyTurned {
		want = 1
	}
	t.orient.toComponents(g, idx, want)
	t.context.near = 0
	for k := range g.numComps {
		t.features = t.orient.features[k]
		t.component(m, l, g, g.firstComp+k, int64(ints[g.at+1+k])-t.orient.ref[k])
	}
}
