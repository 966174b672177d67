package adaptive

import (
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// State is the learned state of one end of a stream: a function of the frames accepted since the
// last Reset and of their sequence numbers. A payload is coded from the state at its baseline. An
// end learns a frame when this frame, or a newer one, becomes a baseline. Not safe for concurrent
// use.
type State struct {
	m       *Model
	learned modelState
	ring    int64 // number of past frames that the codec reads
	newest  int64 // last frame learned, or -1
}

// Reset returns to the initial state. The caller must reset the accepted frames, too. It does not
// allocate.
func (s *State) Reset() {
	s.learned.copy(&s.m.initial)
	s.newest = -1
}

// Learn learns all frames in known after the last one learned, up to seq, in order. It reports
// whether seq is now the last frame learned, so that it can be a baseline. Learning a frame reads
// the [LearnReach] sequence numbers that end with it. It does not allocate.
func (s *State) Learn(seq uint64, known *Frames) bool {
	first := s.newest + 1
	if oldest := int64(known.newest) - int64(known.Cap()) + 1; first < oldest {
		first = oldest
	}
	for n := first; n <= int64(min(seq, known.newest)); n++ {
		if a := known.ring.Get(uint64(n)); a != nil {
			s.learnFrame(n, a.shape, known)
		}
	}
	return s.newest == int64(seq)
}

// CanLearn reports whether known still holds all frames that learning requires from state s on.
func (s *State) CanLearn(known *Frames) bool {
	oldest := int64(known.newest) - int64(known.Cap()) + 1
	return s.newest >= 0 && s.newest+1-LearnReach >= oldest
}

// CopyFrom copies o, which must be of the same model. It does not allocate.
func (s *State) CopyFrom(o *State) {
	s.learned.copy(&o.learned)
	s.newest = o.newest
}

// Newest returns the last frame learned since the last Reset, if any.
func (s *State) Newest() (seq uint64, ok bool) { return uint64(s.newest), s.newest >= 0 }

// learnFrame learns frame n of known, which was accepted with the given shape.
func (s *State) learnFrame(n int64, shape Shape, known *Frames) {
	s.newest = n
	l := &s.learned
	l.counts.learn(shape)
	schedule := aloneSchedule[:]
	if l.counts.last > 1 {
		schedule = chainSchedule[:]
	}
	if class := schedule[l.accepted%uint64(len(schedule))]; class != skip {
		t := learner{class: int(class)}
		t.frame(s.m, l, known, n, n-LearnReach)
	}
	l.accepted++
}

// Hash returns a hash of the state. The ends compare it at the same baseline.
func (s *State) Hash() uint16 {
	return s.learned.hash(fnv.Offset).Fold16()
}

// Schedules of learning. Each accepted frame is learned at the next distance class of the schedule,
// or skipped. The first schedule applies while payloads have single frames. The second applies
// while they have several: all frames but the oldest are then coded at distance 1.
var (
	aloneSchedule = [...]uint8{2, skip, skip, 1, skip, skip, 2, skip, skip, 1, skip, skip, 0, skip, skip, 2, skip, skip, 1, skip, skip}
	chainSchedule = [...]uint8{2, skip, 1, skip, 0, skip, 1, skip, 0, skip, 2, skip, 0, skip}
)

const skip = classes

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
	frame := schema.Frame{Ints: v.ints(n)}
	frame.Bytes, _ = v.bytes(n)
	if last := uint64(l.counts.last); t.class == 0 && last > 1 && l.accepted/uint64(len(chainSchedule))%(last-1) == 0 {
		v.gap = span{n - 1 - chainGap, n - 1} // as if frame n-1 were the oldest of a payload
	}
	d := classDistance[t.class]
	for b := n - d; b > n-2*d; b-- {
		if t.refs.load(&v, n, b) {
			t.groups(m, l, &frame)
			return
		}
	}
}

// chainGap is the distance from the oldest frame of a payload to its baseline that learning at
// distance 1 assumes.
const chainGap = 4

// groups learns a frame whose reference frames are loaded.
func (t *learner) groups(m *Model, l *modelState, frame *schema.Frame) {
	t.refs.compare(frame)
	t.context = residualContext{}
	var last, buttons flagInputs
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := t.refs.groupInputs(g) | last | buttons
		changed := x&frameChanged != 0
		if g.counter {
			changed = t.counter(m, g, lg, frame, changed)
		}
		t.flagShift = lg.flagShift()
		p := lg.w.probability(lg.bias[t.class], x)
		lg.w.learn(&lg.bias[t.class], x, flagStep(changed, p, t.flagShift))
		last = lastFlagInput(changed)
		switch g.form {
		case formBits:
			if changed {
				t.bits(m, l, g, frame.Ints)
				buttons = buttonsChanged
			}
		case formQuat:
			t.quat(m, l, g, frame.Ints, changed)
		case formBytes:
			if changed {
				l.bitModels.bytes[g.index].learn(frame.Bytes[g.blob], t.refs.refBytes[g.blob], t.refs.prevBytes[g.blob])
			}
		case formNumbers:
			t.numbers(m, l, g, frame.Ints, changed)
		}
	}
}

// counter learns whether a counter continues at its last rate, and returns its flag. moved reports
// whether it differs from its reference.
func (t *learner) counter(m *Model, g *group, lg *groupState, frame *schema.Frame, moved bool) (changed bool) {
	follows := m.followsStep(&t.refs, g, frame)
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

// Steps of the sign-sign LMS, Q12.
const (
	slopeRate = 26  // slopes
	inputRate = 110 // scalars
	meanRate  = 3   // mean of the derivative, and rotation by an angular velocity
	bendRate  = 11  // change of the derivative
	quatRate  = 16  // extrapolated rotations
)

// expertTrial updates the experts of a component and records their errors.
type expertTrial struct {
	features *featureSet
	offset   int64 // actual offset from the reference, Q4
	wrap     uint  // 64 minus the bits of the modulus in Q4, or 0
	err      [maxExperts]int64
}

// setError records and returns the error of expert e, whose prediction in Q16 is s.
func (t *expertTrial) setError(e int, s int64) int64 {
	x := (t.offset - (s+1<<11)>>12) << (t.wrap & 63) >> (t.wrap & 63)
	t.err[e] = x
	return x
}

// component learns the offset y of component i, whose features are set, and returns the residual of
// the expert in use.
func (t *learner) component(m *Model, l *modelState, g *group, i int, y int64) (r int64) {
	lc, c := &l.components[i], &m.components[i]
	in := &lc.classes[t.class]
	w := &in.w
	x := expertTrial{features: &t.features, offset: y << 4}
	if c.wrap > 0 {
		x.wrap = 60 - c.wrap
	}
	switch g.family {
	case familyPlain:
		x.learnSlopes(w)
	case familyAngled:
		x.learnSlopes(w)
		x.learnScalars(&l.inputs[c.inputs][t.class])
	case familyDerived:
		x.learnDerived(w)
	case familyTurned:
		x.learnTurned(w)
	case familyExtrapolated:
		x.learnExtrapolated(w)
	}
	best := in.expert
	cost := &in.expertCosts
	for e := range expertCount[g.family] & 7 {
		v := x.err[e&3]
		cost[e&3] += int16((min(log2(max(v, -v)), 31<<10) - int32(cost[e&3])) >> 4)
	}
	v := x.err[best&3]
	r = v >> 4
	t.residual(m.tables, lc, in, r, y-r)
	in.chooseLowest()
	in.learn(max(v, -v))
	return r
}

func (t *expertTrial) learnSlopes(w *weights) {
	f := t.features
	t.setError(0, 0)
	e := t.setError(1, int64(w[0])*f[0])
	w[0] = signStep(w[0], f[0], e, slopeRate)
	e = t.setError(2, int64(w[1])*f[0]+int64(w[2])*f[1]+int64(w[3])*f[2]+int64(w[4])*f[3]+int64(w[5])*f[4])
	w[1] = signStep(w[1], f[0], e, slopeRate)
	w[2] = signStep(w[2], f[1], e, slopeRate)
	w[3] = signStep(w[3], f[2], e, slopeRate)
	w[4] = signStep(w[4], f[3], e, slopeRate)
	w[5] = signStep(w[5], f[4], e, slopeRate)
}

func (t *expertTrial) learnScalars(w *[4]int16) {
	f := t.features
	e := t.setError(3, int64(w[0])*f[5]+int64(w[1])*f[6]+int64(w[2])*f[7]+int64(w[3])*f[8])
	w[0] = signStep(w[0], f[5], e, inputRate)
	w[1] = signStep(w[1], f[6], e, inputRate)
	w[2] = signStep(w[2], f[7], e, inputRate)
	w[3] = signStep(w[3], f[8], e, inputRate)
}

func (t *expertTrial) learnDerived(w *weights) {
	f := t.features
	e := t.setError(0, int64(w[0])*f[0])
	w[0] = signStep(w[0], f[0], e, meanRate)
	e = t.setError(1, int64(w[1])*f[0]+int64(w[2])*f[1]+int64(w[3])*f[2])
	w[1] = signStep(w[1], f[0], e, meanRate)
	w[2] = signStep(w[2], f[1], e, bendRate)
	w[3] = signStep(w[3], f[2], e, bendRate)
}

func (t *expertTrial) learnTurned(w *weights) {
	e := t.setError(0, int64(w[0])*t.features[0])
	w[0] = signStep(w[0], t.features[0], e, meanRate)
}

func (t *expertTrial) learnExtrapolated(w *weights) {
	f := t.features
	t.setError(0, 0)
	e := t.setError(1, int64(w[0])*f[0])
	w[0] = signStep(w[0], f[0], e, quatRate)
	e = t.setError(2, int64(w[1])*f[1])
	w[1] = signStep(w[1], f[1], e, quatRate)
}

// signStep returns w after a step of the sign-sign LMS (least mean squares) filter. The step has
// size rate and reduces the error.
func signStep(w int16, feature, err int64, rate int32) int16 {
	away := int32((feature ^ err) >> 63)
	moves := int32((feature|-feature)>>63) & int32((err|-err)>>63)
	return int16(max(-32000, min(32000, int32(w)+((rate^away)-away)&moves)))
}

// residual learns the cost of residual r under each set of tables, and the weights of the contexts.
// off is the predicted offset from the reference.
func (t *learner) residual(tab *tables, c *componentState, in *classState, r, off int64) {
	near, run, offset := t.context.inputs(in.expected, off)
	magnitude := c.context.adjust(in.expected, near, run, offset)
	row, shift := tableFor(magnitude)
	sym, _ := symbolOf(uint64(max(r, -r)) >> shift)
	sym &= symbols - 1
	cost, v := &tab.costs[row][sym], &in.shapeCosts
	for i := range v {
		v[i] += int16((int32(cost[i]) - int32(v[i])) >> 5)
	}
	shape := in.shape % shapes
	gain := int32(tab.costs[max(0, row-2)][sym][shape]) - int32(tab.costs[min(levels-1, row+2)][sym][shape])
	c.context.learn(gain, near, run, offset)
	t.context.observe(magnitudes[sym]+int32(shift<<10), magnitude)
}

// open returns the frames and the learned state from which p is coded. The state is nil if the
// baseline is unknown or is not the last frame that s has learned.
func (s *State) open(p *Payload, known *Frames) (v view, l *modelState) {
	if !p.HasBase {
		return view{known: known, base: -1, floor: -1}, &s.m.initial
	}
	if p.Base >= p.Newest || s.newest != int64(p.Base) {
		return v, nil
	}
	v = newView(known, s.newest, int64(p.Newest)-s.ring)
	if v.find(v.base) == nil {
		return v, nil
	}
	return v, &s.learned
}
