package adaptive

// forecast is what is expected of component k of a numeric group: a value, and how
// far from it. It is one function, since calls would take most of its time:
// [past.offset], [comp.fit] and [liveComp.expect] say the same.
func (c *frameContext) forecast(l *modelState, ints []int32, g *group, cp *component, lc *componentState, k int) (pred int32, e expectation) {
	p := &c.refs
	lo, hi := &lc.classes[p.lo], &lc.classes[p.hi]
	at := uint(cp.at)
	base := int64(p.ref[at])
	off := int64(0)
	switch a := lo.expert | hi.expert; {
	case g.family == familyDerived:
		off = p.blend(p.derivedOffsets(ints, g, lo, hi, k))
	case a == 0:
	case a == 1:
		s := wrapTo(base-int64(p.h1[at]), cp.wrap) * p.r1 >> 12
		off = p.blend(int64(lo.w[0])*s*int64(lo.expert), int64(hi.w[0])*s*int64(hi.expert))
	case lo.expert == 2 && hi.expert == 2 && cp.wrap == 0:
		h1, h2, hd := int64(p.h1[at]), int64(p.h2[at]), int64(p.hd[at])
		s := (base - h1) * p.r1 >> 12
		x, y := int64(lo.w[1])*s, int64(hi.w[1])*s
		s = (hd - int64(p.hdd[at])) * p.rdd >> 12
		x += int64(lo.w[2]) * s
		y += int64(hi.w[2]) * s
		s = (h1 - h2) * p.r12 >> 12
		x += int64(lo.w[3]) * s
		y += int64(hi.w[3]) * s
		s = (base - hd) * p.rd >> 12
		x += int64(lo.w[4]) * s
		y += int64(hi.w[4]) * s
		s = (h2 - int64(p.h4[at])) * p.r24 >> 12
		x += int64(lo.w[5]) * s
		y += int64(hi.w[5]) * s
		off = p.blend(x, y)
	default:
		off = p.offset(l, ints, g, cp, lc, k)
	}
	return cp.fit(base + off), lc.expect(p, &c.context, off)
}
