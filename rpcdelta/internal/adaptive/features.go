package adaptive

// featureSet holds the features of a component, which its predictions are weighted sums of: offsets
// from the reference in Q4.
type featureSet [features]int64

// slope returns the first feature of slopes: the change from h1 to the reference, continued.
func (p *refFrames) slope(c *component) int64 {
	return wrapTo(int64(p.ref[c.at])-int64(p.h1[c.at]), c.wrap) * p.r1 >> 12
}

// slopes returns the features of a component's own past: changes between older frames, continued.
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

// scalars returns the features of the scalars that predict an angle: new and old value of the first
// two.
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

// mean returns the offset that the mean of the derivative's old and new value leads to.
func (p *refFrames) mean(ints []int32, g *group, k int) int64 {
	at := g.velocity + k
	return (int64(p.ref[at]) + int64(ints[at])) * (p.dist * g.velocityFactor) >> 16
}

// bend returns two features of the derivative's change: bend compares it with the change before the
// reference, lead is the change itself.
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
