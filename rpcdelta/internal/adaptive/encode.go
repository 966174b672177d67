package adaptive

// Encode appends to dst the payload of rows, oldest first, whose sequences end
// at newest. It begins in the free low bits of dst's last byte, which are zero, or if
// free is 0 behind it. The first is coded against the taken frame base, each other
// against the one before it; without hasBase the first stands alone, and
// neither s nor h is read. base must be covered by s and known to h, both must
// be less than the ring older than newest, and all rows newer than it. Encode
// panics if these do not hold, or if there are no rows or more than [MaxRows].
// Nothing is allocated while dst has room.
func (c *Coder) Encode(dst []byte, free uint, rows []*Row, newest, base uint64, hasBase bool, s *State, h History) []byte {
	most := room(newest, base, hasBase)
	if len(rows) == 0 || len(rows) > most {
		panic("adaptive: more rows than the payload can have, or none")
	}
	v, d := s.open(newest, base, hasBase, h)
	if d == nil {
		panic("adaptive: encode against a baseline that is not known")
	}
	c.enc.Reset(dst, free)
	c.encodeCount(len(rows), most)
	v.first = int64(newest) - int64(len(rows)) + 1
	ref := v.base
	for i, row := range rows {
		v.rows = rows[:i]
		seq := v.first + int64(i)
		if i == 0 && !hasBase {
			c.encodeIntra(row)
		} else {
			c.p.fill(&v, seq, ref)
			c.encodeRow(row, d)
		}
		ref = seq
		if i == 0 {
			c.oldest = c.enc.Bits()
		}
	}
	return c.enc.Finish()
}

func (c *Coder) encodeRow(row *Row, d *digest) {
	m, p := c.m, &c.p
	var x changes
	var f flags
	for i := range m.groups {
		g := &m.groups[i]
		dg := &d.groups[i]
		x.of(p, g)
		changed := c.differs(g, row, dg.stepping)
		c.enc.Bit(changed, 1<<16-dg.w.odds(dg.bias[p.class], x, f))
		f.push(changed)
		if !changed {
			continue
		}
		switch g.form {
		case formNumbers:
			c.encodeNumbers(row.Ints, g, d)
		case formQuat:
			c.encodeQuat(row.Ints, g, d)
		case formBits:
			c.encodeBits(row.Ints, g, d)
		case formBytes:
			d.counters.blobs[g.index].encode(&c.enc, g, row.Bytes[g.blob], p.base.Bytes[g.blob], p.prev.Bytes[g.blob])
		}
	}
}

// differs says whether a group differs from its reference.
func (c *Coder) differs(g *group, row *Row, stepping bool) bool {
	if g.form == formBytes {
		return string(row.Bytes[g.blob]) != string(c.p.base.Bytes[g.blob])
	}
	if stepping {
		for k := range g.comps {
			cp := &c.m.comps[g.first+k]
			if row.Ints[cp.at] != step(&c.p, cp) {
				return true
			}
		}
		return false
	}
	x, b := row.Ints[g.at:g.at+g.n], c.p.b[g.at:g.at+g.n]
	for i, v := range x {
		if v != b[i] {
			return true
		}
	}
	return false
}

func (c *Coder) encodeNumbers(ints []int32, g *group, d *digest) {
	p := &c.p
	var x changes
	var f flags
	near, any := int64(-1), false
	for k := range g.comps {
		i := g.first + k
		cp, dc := &c.m.comps[i], &d.comps[i]
		v, base := ints[cp.at], p.b[cp.at]
		if g.comps > 1 && (any || k < g.comps-1) {
			x.at(p, cp.at)
			c.enc.Bit(v != base, 1<<16-dc.flag.w.odds(dc.flag.bias, x, f))
			f.push(v != base)
			if v == base {
				continue
			}
		}
		any = any || v != base
		ch := &dc.choice[p.class]
		if cp.list >= 0 && c.encodeListed(&d.lists[cp.list], v, base) {
			near = nearness(int64(v) - int64(base))
			continue
		}
		pred := cp.fit(int64(base) + c.f.predict(p, ints, g, cp, ch, k))
		r := wrapTo(int64(v)-int64(pred), cp.wrap)
		encodeResidual(&c.enc, ch.expect(p.grow, near), r)
		near = nearness(r)
	}
}

// encodeListed codes v by its rank among frequent values; it is false where the
// residual has to follow.
func (c *Coder) encodeListed(l *frequent, v, base int32) bool {
	if !l.on {
		return false
	}
	at := -1
	if v != base {
		at = l.find(v)
	}
	c.enc.Bit(at >= 0, 1<<16-uint32(l.any))
	if at < 0 {
		return false
	}
	last := l.last(base)
	for i := range last {
		if l.v[i] == base {
			continue
		}
		c.enc.Bit(at == i, 1<<16-uint32(l.hit[i]))
		if at == i {
			break
		}
	}
	return true
}

func (c *Coder) encodeBits(ints []int32, g *group, d *digest) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		o := uint32(c.p.b[cp.at])
		recent := o ^ uint32(c.p.h1[cp.at])
		v := uint32(ints[cp.at]) ^ o
		for j := range cp.wrap {
			c.enc.Bit(v>>j&1 == 1, uint32(d.counters.bits[bi][o>>j&1|recent>>j&1<<1]))
			bi++
		}
	}
}

// Chances of 65536: that a wrong guess of the index means the next likely one,
// and the second next.
const (
	nextIndex   = 59536
	secondIndex = 49536
)

// wants are the features that a quaternion's experts read.
func (d *digest) wants(g *group, class int) uint {
	want := uint(1)
	for k := range g.comps {
		e := experts[g.family][d.comps[g.first+k].choice[class].expert()]
		want |= (1<<e.n - 1) << e.from
	}
	return want
}

func (c *Coder) encodeQuat(ints []int32, g *group, d *digest) {
	p := &c.p
	want := d.wants(g, p.class)
	c.q.prepare(p, ints, g, want)
	idx := int(ints[g.at]) & 3
	c.enc.Bit(idx != c.q.index, uint32(d.counters.index[g.index][c.q.sure]))
	if idx != c.q.index {
		o := c.q.others()
		c.enc.Bit(idx != o[0], nextIndex)
		if idx != o[0] {
			c.enc.Bit(idx != o[1], secondIndex)
		}
	}
	c.q.express(g, idx, want)
	near := int64(-1)
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		ch := &d.comps[g.first+k].choice[p.class]
		e := experts[g.family][ch.expert()]
		pred := cp.fit(c.q.hold[k] + c.q.feats[k].weigh(&ch.w, e))
		r := int64(ints[cp.at]) - int64(pred)
		encodeResidual(&c.enc, ch.expect(p.grow, near), r)
		near = nearness(r)
	}
}
