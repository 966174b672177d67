package adaptive

// Decode reads the payload in src, from the free low bits of its first byte on or
// all of it if free is 0, named by newest, into rows, which has room
// for [MaxRows] or for newest-base, and says how many it held, oldest first.
// base, hasBase, s and h are as in [Coder.Encode]. Every component is within its
// field's range, whatever src is; byte strings are overwritten in place and grow
// as far as their field allows. The error is [ErrMalformed], or [ErrBaseline] if
// base is not known; rows are undefined then. Input is not written to.
func (c *Coder) Decode(rows []*Row, src []byte, free uint, newest, base uint64, hasBase bool, s *State, h History) (int, error) {
	v, d := s.open(newest, base, hasBase, h)
	if d == nil {
		return 0, ErrBaseline
	}
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
			c.p.fill(&v, seq, ref)
			err = c.decodeRow(row, d)
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

func (c *Coder) decodeRow(row *Row, d *digest) (err error) {
	m, p := c.m, &c.p
	var x changes
	var f flags
	for i := range m.groups {
		g := &m.groups[i]
		dg := &d.groups[i]
		x.of(p, g)
		changed := c.dec.Bit(1<<16 - dg.w.odds(dg.bias[p.class], x, f))
		f.push(changed)
		switch {
		case !changed:
			c.keep(g, row, dg.stepping)
		case g.form == formNumbers:
			err = c.decodeNumbers(row.Ints, g, d)
		case g.form == formQuat:
			err = c.decodeQuat(row.Ints, g, d)
		case g.form == formBits:
			c.decodeBits(row.Ints, g, d)
		default:
			b := row.Bytes[g.blob][:0]
			row.Bytes[g.blob], err = d.counters.blobs[g.index].decode(&c.dec, g, b, p.base.Bytes[g.blob], p.prev.Bytes[g.blob])
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
		row.Bytes[g.blob] = append(row.Bytes[g.blob][:0], c.p.base.Bytes[g.blob]...)
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

func (c *Coder) decodeNumbers(ints []int32, g *group, d *digest) error {
	p := &c.p
	var x changes
	var f flags
	near, any := int64(-1), false
	for k := range g.comps {
		i := g.first + k
		cp, dc := &c.m.comps[i], &d.comps[i]
		base := p.b[cp.at]
		if g.comps > 1 && (any || k < g.comps-1) {
			x.at(p, cp.at)
			changed := c.dec.Bit(1<<16 - dc.flag.w.odds(dc.flag.bias, x, f))
			f.push(changed)
			if !changed {
				ints[cp.at] = base
				continue
			}
		}
		if cp.list >= 0 {
			if v, ok := c.decodeListed(&d.lists[cp.list], base); ok {
				ints[cp.at] = v
				any = true
				near = nearness(int64(v) - int64(base))
				continue
			}
		}
		ch := &dc.choice[p.class]
		pred := cp.fit(int64(base) + c.f.predict(p, ints, g, cp, ch, k))
		r := decodeResidual(&c.dec, ch.expect(p.grow, near))
		v := cp.fit(int64(pred) + r)
		if wrapTo(int64(v)-int64(pred), cp.wrap) != r {
			return ErrMalformed
		}
		ints[cp.at] = v
		any = any || v != base
		near = nearness(r)
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

func (c *Coder) decodeBits(ints []int32, g *group, d *digest) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		o := uint32(c.p.b[cp.at])
		recent := o ^ uint32(c.p.h1[cp.at])
		v := o
		for j := range cp.wrap {
			if c.dec.Bit(uint32(d.counters.bits[bi][o>>j&1|recent>>j&1<<1])) {
				v ^= 1 << j
			}
			bi++
		}
		ints[cp.at] = int32(v)
	}
}

func (c *Coder) decodeQuat(ints []int32, g *group, d *digest) error {
	p := &c.p
	want := d.wants(g, p.class)
	c.q.prepare(p, ints, g, want)
	idx := c.q.index
	if c.dec.Bit(uint32(d.counters.index[g.index][c.q.sure])) {
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
	near := int64(-1)
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		ch := &d.comps[g.first+k].choice[p.class]
		e := experts[g.family][ch.expert()]
		pred := cp.fit(c.q.hold[k] + c.q.feats[k].weigh(&ch.w, e))
		r := decodeResidual(&c.dec, ch.expect(p.grow, near))
		v := int64(pred) + r
		if v < cp.lo || v > cp.hi {
			return ErrMalformed
		}
		ints[cp.at] = int32(v)
		near = nearness(r)
	}
	return nil
}
