package adaptive

// featureSet is what predictions are made of: offsets from the reference, Q4.
type featureSet [features]int64

// slope is where a component goes if it goes on as from h1 to b.
func (p *past) slope(c *comp) int64 {
	return wrapTo(int64(p.b[c.at])-int64(p.h1[c.at]), c.wrap) * p.r1 >> 12
}

// slopes are the features of a component's own past.
func (p *past) slopes(c *comp) (s1, sdd, s12, sd, s24 int64) {
	at, w := c.at, c.wrap
	b, h1, h2, hd := int64(p.b[at]), int64(p.h1[at]), int64(p.h2[at]), int64(p.hd[at])
	h4, hdd := int64(p.h4[at]), int64(p.hdd[at])
	s1 = wrapTo(b-h1, w) * p.r1 >> 12
	sdd = wrapTo(hd-hdd, w) * p.rdd >> 12
	s12 = wrapTo(h1-h2, w) * p.r12 >> 12
	sd = wrapTo(b-hd, w) * p.rd >> 12
	s24 = wrapTo(h2-h4, w) * p.r24 >> 12
	return s1, sdd, s12, sd, s24
}

// driven are the features of the scalars beside an angle: old and new values.
func (p *past) driven(ints []int32, g *group) (new1, old1, new2, old2 int64) {
	if g.ninputs > 0 {
		at := g.inputs[0]
		new1, old1 = int64(ints[at])*p.d<<6, int64(p.b[at])*p.d<<6
	}
	if g.ninputs > 1 {
		at := g.inputs[1]
		new2, old2 = int64(ints[at])*p.d<<6, int64(p.b[at])*p.d<<6
	}
	return new1, old1, new2, old2
}

// mean is the way that the mean of the derivative's old and new value leads.
func (p *past) mean(ints []int32, g *group, k int) int64 {
	at := g.velocity + k
	return (int64(p.b[at]) + int64(ints[at])) * (p.d * g.factor) >> 16
}

// bend is how the derivative's change lies between both: what it changed before
// and what it changed in between.
func (p *past) bend(ints []int32, g *group, k int) (bend, lead int64) {
	at := g.velocity + k
	b, x := int64(p.b[at]), int64(ints[at])
	third := p.d * g.factor / 3
	bend = ((x-b)<<16 - (b-int64(p.h1[at]))*p.r1) >> 4 * third >> 28
	return bend, (x - b) * (p.d * g.factor) >> 16
}

// all sets every feature that a numeric family has.
func (f *featureSet) all(p *past, ints []int32, g *group, c *comp, k int) {
	if g.family == derived {
		f[0] = p.mean(ints, g, k)
		f[1], f[2] = p.bend(ints, g, k)
		return
	}
	f[0], f[1], f[2], f[3], f[4] = p.slopes(c)
	if g.family == angled {
		f[5], f[6], f[7], f[8] = p.driven(ints, g)
	}
}

// half rounds a product of Q4 and Q12 to nearest.
const half = 1 << 15

// predict is the offset that an expert of a numeric family expects of a
// component, by its weights.
func (p *past) predict(ints []int32, g *group, c *comp, expert uint8, w []int16, k int) int64 {
	if g.family == derived {
		mean := p.mean(ints, g, k)
		if expert == 0 {
			return (int64(w[0])*mean + half) >> 16
		}
		bend, lead := p.bend(ints, g, k)
		return (int64(w[1])*mean + int64(w[2])*bend + int64(w[3])*lead + half) >> 16
	}
	switch expert {
	case 0:
		return 0
	case 1:
		return (int64(w[0])*p.slope(c) + half) >> 16
	case 2:
		w := (*[6]int16)(w)
		s1, sdd, s12, sd, s24 := p.slopes(c)
		return (int64(w[1])*s1 + int64(w[2])*sdd + int64(w[3])*s12 + int64(w[4])*sd + int64(w[5])*s24 + half) >> 16
	}
	v := (*[4]int16)(w[6:])
	new1, old1, new2, old2 := p.driven(ints, g)
	return (int64(v[0])*new1 + int64(v[1])*old1 + int64(v[2])*new2 + int64(v[3])*old2 + half) >> 16
}

// turns is the same of an orientation's component.
func (f *featureSet) turns(in family, expert uint8, w []int16) int64 {
	switch {
	case in == turned || expert == 1:
		return (int64(w[0])*f[0] + half) >> 16
	case expert == 0:
		return 0
	case expert == 2:
		return (int64(w[1])*f[1] + half) >> 16
	}
	v := (*[4]int16)(w[2:])
	return (int64(v[0])*f[0] + int64(v[1])*f[1] + int64(v[2])*f[2] + int64(v[3])*f[3] + half) >> 16
}

// step is where a counter goes: as far as it went before, in proportion.
func step(p *past, c *comp) int32 {
	b := p.b[c.at]
	return c.fit(int64(b) + wrapTo(int64(b)-int64(p.h1[c.at]), c.wrap)*p.r1>>16)
}

// steps says whether all of a counter's components are where their step leads.
func (m *Model) steps(p *past, g *group, row *Row) bool {
	for k := range g.comps {
		c := &m.comps[g.first+k]
		if row.Ints[c.at] != step(p, c) {
			return false
		}
	}
	return true
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
