package adaptive

// row codes one frame against its reference.
func (c *payloadCodec[M]) row(row *Row, l *live) (err error) {
	m, p := c.m, &c.p
	if c.decodes() {
		p.compare(&Row{p.b, p.base})
	} else {
		p.compare(row)
	}
	c.s = surprise{}
	var last, bits changes
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := p.changesOf(g) | last | bits
		changed := x&movedNow != 0
		if g.counts && !c.decodes() && lg.stepping() {
			changed = !m.steps(p, g, row)
		}
		p0 := 1<<16 - lg.w.odds(lg.bias[p.class], x)
		if c.decodes() {
			changed = c.dec.Narrow(p0)
			c.dec.Settle()
		} else {
			c.enc.Narrow(changed, p0)
			c.enc.Settle()
		}
		if c.measures() {
			c.meter.Flags(g.field, c.spent())
		}
		last = toldBy(changed)
		switch {
		case !changed && !c.decodes() && !c.measures():
		case !changed:
			c.unchanged(g, row, lg.stepping())
		case g.form == formNumbers:
			err = c.numbers(row.Ints, g, l)
		case g.form == formQuat:
			err = c.quat(row.Ints, g, l)
		case g.form == formBits:
			c.bits(row.Ints, g, l)
			bits = pressed
		default:
			err = c.bytes(row, g, &l.counters.blobs[g.index])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unchanged sets a group to its reference while decoding.
func (c *payloadCodec[M]) unchanged(g *group, row *Row, stepping bool) {
	if c.measures() {
		for k := range g.comps {
			c.meter.Component(g.field, k, 0, ByRest, NoResidual)
		}
	}
	switch {
	case !c.decodes():
	case g.form == formBytes:
		row.Bytes[g.blob] = append(row.Bytes[g.blob][:0], c.p.base[g.blob]...)
	case stepping:
		for k := range g.comps {
			cp := &c.m.comps[g.first+k]
			row.Ints[cp.at] = step(&c.p, cp)
		}
	default:
		copy(row.Ints[g.at:g.at+g.n], c.p.b[g.at:g.at+g.n])
	}
}

func (c *payloadCodec[M]) numbers(ints []int32, g *group, l *live) error {
	p := &c.p
	var last changes
	any := false
	c.s.near = 0
	comps := c.m.comps[g.first:][:g.comps]
	lives := l.comps[g.first:][:len(comps)]
	for k := range comps {
		cp, lc := &comps[k], &lives[k]
		v, base := ints[cp.at], p.b[cp.at]
		if g.comps > 1 && (any || k < g.comps-1) {
			x := changes(p.moved[cp.at]) | last
			changed := v != base
			p0 := 1<<16 - lc.flag.w.odds(lc.flag.bias, x)
			if c.decodes() {
				changed = c.dec.Narrow(p0)
				c.dec.Settle()
			} else {
				c.enc.Narrow(changed, p0)
				c.enc.Settle()
			}
			if c.measures() {
				c.meter.Flags(g.field, c.spent())
			}
			last = toldBy(changed)
			if !changed {
				if c.decodes() {
					ints[cp.at] = base
				} else if c.measures() {
					c.meter.Component(g.field, k, 0, ByRest, NoResidual)
				}
				continue
			}
		}
		if cp.list >= 0 {
			if x, ok := c.listed(&l.lists[cp.list].frequent, v, base); ok {
				any = true
				if c.decodes() {
					ints[cp.at] = x
				} else if c.measures() {
					c.meter.Component(g.field, k, c.spent(), ByValue, NoResidual)
				}
				continue
			}
		}
		pred, x := c.forecast(l, ints, g, cp, lc, k)
		r := int64(0)
		if !c.decodes() {
			r = wrapTo(int64(v)-int64(pred), cp.wrap)
		}
		r, size := c.residual(r, x)
		if c.decodes() {
			v = cp.fit(int64(pred) + r)
			if wrapTo(int64(v)-int64(pred), cp.wrap) != r {
				return ErrMalformed
			}
			ints[cp.at] = v
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
		}
		any = any || v != base
		c.s.note(size, x.at)
	}
	return nil
}

// listed codes v by its rank among frequent values; it is false where the
// residual has to follow.
func (c *payloadCodec[M]) listed(l *frequent, v, base int32) (int32, bool) {
	if !l.on {
		return v, false
	}
	rank := -1
	if !c.decodes() && v != base {
		rank = l.find(v)
	}
	if !c.bit(rank >= 0, 1<<16-uint32(l.any)) {
		return v, false
	}
	last := l.last(base)
	for i := range last {
		if l.v[i] != base && c.bit(rank == i, 1<<16-uint32(l.hit[i])) {
			return l.v[i], true
		}
	}
	return l.v[max(0, last)], true
}

func (c *payloadCodec[M]) bits(ints []int32, g *group, l *live) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		o := uint32(c.p.b[cp.at])
		recent := o ^ uint32(c.p.h1[cp.at])
		flipped := uint32(ints[cp.at]) ^ o
		v := o
		for j := range cp.wrap {
			if c.bit(flipped>>j&1 == 1, uint32(l.counters.bits[bi][o>>j&1|recent>>j&1<<1])) {
				v ^= 1 << j
			}
			bi++
		}
		if c.decodes() {
			ints[cp.at] = int32(v)
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), ByHold, NoResidual)
		}
	}
}

// wants are the features that a quaternion's experts read.
func (l *live) wants(g *group, p *past) uint {
	want := uint(1)
	for k := range g.comps {
		c := &l.comps[g.first+k]
		want |= wanted[g.family][c.in[p.lo].expert&3] | wanted[g.family][c.in[p.hi].expert&3]
	}
	return want
}

func (c *payloadCodec[M]) quat(ints []int32, g *group, l *live) error {
	p := &c.p
	want := l.wants(g, p)
	c.q.prepare(p, ints, g, want)
	idx := c.quatIndex(int(ints[g.at])&3, l.counters.index[g.index][c.q.sure])
	if c.decodes() {
		ints[g.at] = int32(idx)
	} else if c.measures() {
		c.meter.Flags(g.field, c.spent())
	}
	c.q.express(g, idx, want)
	c.s.near = 0
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		lc := &l.comps[g.first+k]
		off := p.turn(&c.q.feats[k], g, lc)
		pred := int64(cp.fit(c.q.hold[k] + off))
		x := lc.expect(p, &c.s, off)
		r, size := c.residual(int64(ints[cp.at])-pred, x)
		if c.decodes() {
			v := pred + r
			if v < cp.lo || v > cp.hi {
				return ErrMalformed
			}
			ints[cp.at] = int32(v)
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
		}
		c.s.note(size, x.at)
	}
	return nil
}

// Chances of 65536: that a wrong guess of the index means the next likely one,
// and the second next.
const (
	nextIndex   = 59536
	secondIndex = 49536
)

func (c *payloadCodec[M]) quatIndex(idx int, chance uint16) int {
	if !c.bit(idx != c.q.index, uint32(chance)) {
		return c.q.index
	}
	o := c.q.others()
	switch {
	case !c.bit(idx != o[0], nextIndex):
		return o[0]
	case !c.bit(idx != o[1], secondIndex):
		return o[1]
	}
	return o[2]
}
