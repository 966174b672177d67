package adaptive

import "github.com/uplink-rpc/uplink/internal/rpcdelta/cost"

// offset returns the predicted offset of component k of a numeric group from its reference, in
// whole steps. It interpolates between the experts of the two classes around the distance.
func (p *refFrames) offset(
	l *modelState, ints []int32, g *group, c *component, lc *componentState, k int,
) int64 {
	lo, hi := &lc.classes[p.lo], &lc.classes[p.hi]
	a, b := lo.expert, hi.expert
	if g.family == familyDerived {
		return p.blend(p.derivedOffsets(ints, g, lo, hi, k))
	}
	x, y := p.expertOffsets(l, ints, g, c, lo, hi, a)
	if a != b {
		_, y = p.expertOffsets(l, ints, g, c, lo, hi, b)
	}
	return p.blend(x, y)
}

// derivedOffsets returns the offsets in Q16 that the experts of two classes predict from the
// derivative.
func (p *refFrames) derivedOffsets(ints []int32, g *group, lo, hi *classState, k int) (x, y int64) {
	mean := p.mean(ints, g, k)
	x, y = int64(lo.w[0])*mean, int64(hi.w[0])*mean
	if lo.expert|hi.expert == 0 {
		return x, y
	}
	bend, lead := p.bend(ints, g, k)
	if lo.expert != 0 {
		x = int64(lo.w[1])*mean + int64(lo.w[2])*bend + int64(lo.w[3])*lead
	}
	if hi.expert != 0 {
		y = int64(hi.w[1])*mean + int64(hi.w[2])*bend + int64(hi.w[3])*lead
	}
	return x, y
}

// expertOffsets returns the offsets in Q16 that an expert on slopes or scalars predicts with the
// weights of two classes.
func (p *refFrames) expertOffsets(
	l *modelState, ints []int32, g *group, c *component, lo, hi *classState, expert uint8,
) (x, y int64) {
	w, v := &lo.w, &hi.w
	switch expert {
	case 0:
		return 0, 0
	case 1:
		s := p.slope(c)
		return int64(w[0]) * s, int64(v[0]) * s
	case 2:
		s1, sdd, s12, sd, s24 := p.slopes(c)
		x = int64(w[1])*s1 + int64(w[2])*sdd + int64(w[3])*s12 + int64(w[4])*sd + int64(w[5])*s24
		if lo == hi {
			return x, x
		}
		return x, int64(v[1])*s1 + int64(v[2])*sdd + int64(v[3])*s12 + int64(v[4])*sd + int64(v[5])*s24
	}
	d := &l.inputs[c.inputs]
	i, j := &d[p.lo], &d[p.hi]
	new1, old1, new2, old2 := p.scalars(ints, g)
	return int64(i[0])*new1 + int64(i[1])*old1 + int64(i[2])*new2 + int64(i[3])*old2,
		int64(j[0])*new1 + int64(j[1])*old1 + int64(j[2])*new2 + int64(j[3])*old2
}

// quatOffset returns the predicted offset of a quaternion's component, in whole steps.
func (p *refFrames) quatOffset(f *featureSet, g *group, lc *componentState) int64 {
	lo, hi := &lc.classes[p.lo], &lc.classes[p.hi]
	return p.blend(f.quatExpertOffset(g.family, lo), f.quatExpertOffset(g.family, hi))
}

// quatExpertOffset returns the offset in Q16 that the expert of a class predicts.
func (f *featureSet) quatExpertOffset(fam family, c *classState) int64 {
	switch {
	case fam == familyTurned || c.expert == 1:
		return int64(c.w[0]) * f[0]
	case c.expert == 0:
		return 0
	}
	return int64(c.w[1]) * f[1]
}

// half is added to a product of Q4 and Q12 to round it to nearest.
const half = 1 << 15

// blend interpolates between the offsets x and y in Q16 of the classes lo and hi and returns whole
// steps.
func (p *refFrames) blend(x, y int64) int64 {
	return (x + (y-x)>>8*int64(p.share) + half) >> 16
}

// nextStep returns the value of a counter that continues at its last rate.
func nextStep(p *refFrames, c *component) int32 {
	b := p.ref[c.at]
	return c.fit(int64(b) + (wrapTo(int64(b)-int64(p.h1[c.at]), c.wrap)*p.r1+half)>>16)
}

// featureSet holds the features of a component, as offsets from the reference in Q4. Predictions
// are weighted sums of features.
type featureSet [features]int64

// slope returns the first slope feature: the change from h1 to the reference, extrapolated.
func (p *refFrames) slope(c *component) int64 {
	return wrapTo(int64(p.ref[c.at])-int64(p.h1[c.at]), c.wrap) * p.r1 >> 12
}

// slopes returns the slope features: changes between earlier frames, extrapolated.
func (p *refFrames) slopes(c *component) (s1, sdd, s12, sd, s24 int64) {
	at, w := c.at, c.wrap
	b, h1, h2, hd := int64(p.ref[at]), int64(p.h1[at]), int64(p.h2[at]), int64(p.hd[at])
	h4, hdd := int64(p.h4[at]), int64(p.hdd[at])
	if w == 0 {
		return (b - h1) * p.r1 >> 12, (hd - hdd) * p.rdd >> 12, (h1 - h2) * p.r12 >> 12,
			(b - hd) * p.rd >> 12, (h2 - h4) * p.r24 >> 12
	}
	s1 = wrapTo(b-h1, w) * p.r1 >> 12
	sdd = wrapTo(hd-hdd, w) * p.rdd >> 12
	s12 = wrapTo(h1-h2, w) * p.r12 >> 12
	sd = wrapTo(b-hd, w) * p.rd >> 12
	s24 = wrapTo(h2-h4, w) * p.r24 >> 12
	return s1, sdd, s12, sd, s24
}

// scalars returns the features of the first two scalars that predict an angle: the new and old
// value of each.
func (p *refFrames) scalars(ints []int32, g *group) (new1, old1, new2, old2 int64) {
	if g.numScalars > 0 {
		at := g.scalars[0]
		new1, old1 = int64(ints[at])*p.dist<<6, int64(p.ref[at])*p.dist<<6
	}
	if g.numScalars > 1 {
		at := g.scalars[1]
		new2, old2 = int64(ints[at])*p.dist<<6, int64(p.ref[at])*p.dist<<6
	}
	return new1, old1, new2, old2
}

// mean returns the offset predicted by the mean of the derivative's old and new value.
func (p *refFrames) mean(ints []int32, g *group, k int) int64 {
	at := g.velocity + k
	return (int64(p.ref[at]) + int64(ints[at])) * (p.dist * g.velocityFactor) >> 16
}

// bend returns two features of the derivative: bend is its second difference, lead its last change.
func (p *refFrames) bend(ints []int32, g *group, k int) (bend, lead int64) {
	at := g.velocity + k
	b, x := int64(p.ref[at]), int64(ints[at])
	third := p.dist * g.velocityFactor / 3
	bend = ((x-b)<<16 - (b-int64(p.h1[at]))*p.r1) >> 4 * third >> 28
	return bend, (x - b) * (p.dist * g.velocityFactor) >> 16
}

// compute sets all features of component k of a numeric group.
func (f *featureSet) compute(p *refFrames, ints []int32, g *group, c *component, k int) {
	if g.family == familyDerived {
		f[0] = p.mean(ints, g, k)
		f[1], f[2] = p.bend(ints, g, k)
		return
	}
	f[0], f[1], f[2], f[3], f[4] = p.slopes(c)
	if g.family == familyAngled {
		f[5], f[6], f[7], f[8] = p.scalars(ints, g)
	}
}

// predictors are the experts of each family.
var predictors = [families][maxExperts]cost.Predictor{
	familyPlain:        {cost.ByHold, cost.BySlope, cost.BySlopes},
	familyAngled:       {cost.ByHold, cost.BySlope, cost.BySlopes, cost.ByScalars},
	familyDerived:      {cost.ByMean, cost.ByBend},
	familyTurned:       {cost.ByTurn, cost.ByTurn, cost.ByTurn, cost.ByTurn},
	familyExtrapolated: {cost.ByHold, cost.ByTurnOn, cost.ByTurnFar},
}

// predictor returns the expert that predicts a component: if two are interpolated, the one with the
// larger share.
func (p *refFrames) predictor(g *group, lc *componentState) cost.Predictor {
	class := p.lo
	if p.share >= 1<<7 {
		class = p.hi
	}
	return predictors[g.family][lc.classes[class].expert&3]
}
