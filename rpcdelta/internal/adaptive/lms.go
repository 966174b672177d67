package adaptive

// Steps of the sign-sign LMS, Q12.
const (
	slopeRate   = 26  // slopes
	inputRate   = 110 // scalars
	meanRate    = 3   // the derivative's mean, and the turn by an angular velocity
	bendRate    = 11  // the derivative's change
	quatRate    = 16  // extrapolated rotations
	contextRate = 2   // contexts of a residual, per bit saved; not a sign-sign LMS
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

// signStep returns w after a step of the sign-sign LMS: by rate, in the direction that reduces the
// error.
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
