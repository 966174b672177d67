package adaptive

// featureSet is what predictions are made of: offsets from the reference, Q4.
type featureSet [features]int64

// weigh is the weighted sum of features from, from+1, ..., in whole steps.
func (f *featureSet) weigh(w *[maxUsed]int16, e expert) int64 {
	s := int64(1 << 15)
	switch e.from {
	case 1:
		s += int64(w[0]) * f[1]
	case 5:
		s += int64(w[0])*f[5] + int64(w[1])*f[6] + int64(w[2])*f[7] + int64(w[3])*f[8]
	default:
		switch e.n {
		case 5:
			s += int64(w[4]) * f[4]
			fallthrough
		case 4:
			s += int64(w[3]) * f[3]
			fallthrough
		case 3:
			s += int64(w[2])*f[2] + int64(w[1])*f[1]
			fallthrough
		case 1:
			s += int64(w[0]) * f[0]
		}
	}
	return s >> 16
}

// slope is the feature that every numeric family has alone.
func (f *featureSet) slope(p *past, c *comp) {
	f[0] = wrapTo(int64(p.b[c.at])-int64(p.h1[c.at]), c.wrap) * p.r1 >> 12
}

// slopes are the features of the component's own past.
func (f *featureSet) slopes(p *past, c *comp) {
	b, h1, h2, hd := int64(p.b[c.at]), int64(p.h1[c.at]), int64(p.h2[c.at]), int64(p.hd[c.at])
	h4, hdd := int64(p.h4[c.at]), int64(p.hdd[c.at])
	w := c.wrap
	f[0] = wrapTo(b-h1, w) * p.r1 >> 12
	f[1] = wrapTo(hd-hdd, w) * p.rdd >> 12
	f[2] = wrapTo(h1-h2, w) * p.r12 >> 12
	f[3] = wrapTo(b-hd, w) * p.rd >> 12
	f[4] = wrapTo(h2-h4, w) * p.r24 >> 12
}

// driven are the features of the scalars beside an angle: old and new values.
func (f *featureSet) driven(p *past, ints []int32, g *group) {
	f[7], f[8] = 0, 0
	for j, at := range g.inputs[:g.ninputs] {
		f[5+2*j] = int64(ints[at]) * p.d << 6
		f[6+2*j] = int64(p.b[at]) * p.d << 6
	}
}

// mean is the way that the mean of the derivative's old and new value leads.
func (f *featureSet) mean(p *past, ints []int32, g *group, k int) {
	f[0] = (int64(p.b[g.velocity+k]) + int64(ints[g.velocity+k])) * (p.d * g.factor) >> 16
}

// bend is how the derivative's change lies between both: what it changed before
// and what it changed in between.
func (f *featureSet) bend(p *past, ints []int32, g *group, k int) {
	at := g.velocity + k
	b, x := int64(p.b[at]), int64(ints[at])
	third := p.d * g.factor / 3
	f[1] = ((x-b)<<16 - (b-int64(p.h1[at]))*p.r1) >> 4 * third >> 28
	f[2] = (x - b) * (p.d * g.factor) >> 16
}

// all sets every feature that a numeric family has.
func (f *featureSet) all(p *past, ints []int32, g *group, c *comp, k int) {
	if g.family == derived {
		f.mean(p, ints, g, k)
		f.bend(p, ints, g, k)
		return
	}
	f.slopes(p, c)
	if g.family == angled {
		f.driven(p, ints, g)
	}
}

// predict is the offset that the chosen expert expects of a component.
func (f *featureSet) predict(p *past, ints []int32, g *group, c *comp, d *choice, k int) int64 {
	e := experts[g.family][d.expert()]
	if e.n == 0 {
		return 0
	}
	if g.family == derived {
		f.mean(p, ints, g, k)
		if e.n > 1 {
			f.bend(p, ints, g, k)
		}
		return f.weigh(&d.w, e)
	}
	switch d.expert() {
	case 1:
		f.slope(p, c)
	case 2:
		f.slopes(p, c)
	default:
		f.driven(p, ints, g)
	}
	return f.weigh(&d.w, e)
}

// step is where a counter goes: as far as it went before, in proportion.
func step(p *past, c *comp) int32 {
	b := p.b[c.at]
	return c.fit(int64(b) + wrapTo(int64(b)-int64(p.h1[c.at]), c.wrap)*p.r1>>16)
}

// fit brings x into the component's range, by its modulus if it has one.
func (c *comp) fit(x int64) int32 {
	switch {
	case c.wrap == 0:
		return int32(max(c.lo, min(c.hi, x)))
	case c.signed:
		return int32(wrapTo(x, c.wrap))
	}
	return int32(x) & c.mask
}
