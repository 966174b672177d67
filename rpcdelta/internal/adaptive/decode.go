package adaptive

// Decode reads the payload in src, from the free low bits of its first byte on or
// all of it if free is 0, named by newest, into rows, which has room
// for [MaxRows] or for newest-base, and says how many it held, oldest first.
// base, hasBase, s and known are as in [Coder.Encode]. Every component is within its
// field's range, whatever src is; byte strings are overwritten in place and grow
// as far as their field allows. The error is [ErrMalformed], or [ErrBaseline] if
// base is not known, or not what s learned last; rows are undefined then. Input is
// not written to.
func (c *Coder) Decode(rows []*Row, src []byte, free uint, newest, base uint64, hasBase bool, s *State, known *Frames) (int, error) {
	v, l := s.open(newest, base, hasBase, known)
	if l == nil {
		return 0, ErrBaseline
	}
	c.m = s.m
	c.dec.Reset(src, free)
	n := c.decodeCount(room(newest, base, hasBase))
	if n > len(rows) {
		return 0, ErrMalformed
	}
	v.first = int64(newest) - int64(n) + 1
	ref := v.base
	for i, row := range rows[:n] {
		v.rows = rows[:i]
		seq := v.first + int64(i)
		var err error
		if i == 0 && !hasBase {
			err = c.decodeIntra(row)
		} else {
			c.fill(&v, seq, ref)
			err = c.decodeRow(row, l)
		}
		if err != nil {
			return 0, err
		}
		ref = seq
	}
	if !c.dec.Complete() {
		return 0, ErrMalformed
	}
	return n, nil
}

func (c *Coder) decodeRow(row *Row, l *live) (err error) {
	m, p := c.m, &c.p
	p.compare(&Row{p.b, p.base})
	c.s = surprise{}
	var last, bits changes
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := p.changesOf(g) | last | bits
		changed := c.dec.Narrow(1<<16 - lg.w.odds(lg.bias[p.class], x))
		c.dec.Settle()
		last = toldBy(changed)
		switch {
		case !changed:
			c.keep(g, row, lg.stepping())
		case g.form == formNumbers:
			err = c.decodeNumbers(row.Ints, g, l)
		case g.form == formQuat:
			err = c.decodeQuat(row.Ints, g, l)
		case g.form == formBits:
			c.decodeBits(row.Ints, g, l)
			bits = pressed
		default:
			b := row.Bytes[g.blob][:0]
			row.Bytes[g.blob], err = l.counters.blobs[g.index].decode(&c.dec, g, b, p.base[g.blob], p.prev[g.blob])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep sets a group to its reference.
func (c *Coder) keep(g *group, row *Row, stepping bool) {
	if g.form == formBytes {
		row.Bytes[g.blob] = append(row.Bytes[g.blob][:0], c.p.base[g.blob]...)
		return
	}
	if stepping {
		for k := range g.comps {
			cp := &c.m.comps[g.first+k]
			row.Ints[cp.at] = step(&c.p, cp)
		}
		return
	}
	copy(row.Ints[g.at:g.at+g.n], c.p.b[g.at:g.at+g.n])
}

func (c *Coder) decodeNumbers(ints []int32, g *group, l *live) error {
	p := &c.p
	var last changes
	any := false
	c.s.near = 0
	comps := c.m.comps[g.first:][:g.comps]
	lives := l.comps[g.first:][:len(comps)]
	for k := range comps {
		cp, lc := &comps[k], &lives[k]
		base := p.b[cp.at]
		if g.comps > 1 && (any || k < g.comps-1) {
			x := changes(p.moved[cp.at]) | last
			changed := c.dec.Narrow(1<<16 - lc.flag.w.odds(lc.flag.bias, x))
			c.dec.Settle()
			last = toldBy(changed)
			if !changed {
				ints[cp.at] = base
				continue
			}
		}
		if cp.list >= 0 {
			if v, ok := c.decodeListed(&l.lists[cp.list].frequent, base); ok {
				ints[cp.at] = v
				any = true
				continue
			}
		}
		pred, x := c.forecast(l, ints, g, cp, lc, k)
		r, size := decodeResidual(&c.dec, c.m.tables, x)
		v := cp.fit(int64(pred) + r)
		if wrapTo(int64(v)-int64(pred), cp.wrap) != r {
			return ErrMalformed
		}
		ints[cp.at] = v
		any = any || v != base
		c.s.note(size, x.at)
	}
	return nil
}

// decodeListed is the inverse of encodeListed.
func (c *Coder) decodeListed(l *frequent, base int32) (int32, bool) {
	if !l.on || !c.dec.Bit(1<<16-uint32(l.any)) {
		return 0, false
	}
	last := l.last(base)
	for i := range last {
		if l.v[i] != base && c.dec.Bit(1<<16-uint32(l.hit[i])) {
			return l.v[i], true
		}
	}
	return l.v[max(0, last)], true
}

func (c *Coder) decodeBits(ints []int32, g *group, l *live) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		o := uint32(c.p.b[cp.at])
		recent := o ^ uint32(c.p.h1[cp.at])
		v := o
		for j := range cp.wrap {
			if c.dec.Bit(uint32(l.counters.bits[bi][o>>j&1|recent>>j&1<<1])) {
				v ^= 1 << j
			}
			bi++
		}
		ints[cp.at] = int32(v)
	}
}

func (c *Coder) decodeQuat(ints []int32, g *group, l *live) error {
	p := &c.p
	want := l.wants(g, p)
	c.q.prepare(p, ints, g, want)
	idx := c.q.index
	if c.dec.Bit(uint32(l.counters.index[g.index][c.q.sure])) {
		o := c.q.others()
		idx = o[0]
		if c.dec.Bit(nextIndex) {
			idx = o[1]
			if c.dec.Bit(secondIndex) {
				idx = o[2]
			}
		}
	}
	ints[g.at] = int32(idx)
	c.q.express(g, idx, want)
	c.s.near = 0
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		lc := &l.comps[g.first+k]
		off := p.turn(&c.q.feats[k], g, lc)
		pred := int64(cp.fit(c.q.hold[k] + off))
		x := lc.expect(p, &c.s, off)
		r, size := decodeResidual(&c.dec, c.m.tables, x)
		v := pred + r
		if v < cp.lo || v > cp.hi {
			return ErrMalformed
		}
		ints[cp.at] = int32(v)
		c.s.note(size, x.at)
	}
	return nil
}
