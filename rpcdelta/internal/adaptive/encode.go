package adaptive

// Encode appends to dst the payload of rows, oldest first, whose sequences end
// at newest. It begins in the free low bits of dst's last byte, which are zero, or if
// free is 0 behind it. The first is coded against the taken frame base, each other
// against the one before it; without hasBase the first stands alone, and
// only the model of s is read. base must be in known, the last frame that s
// learned, and less than the ring older than newest, and all rows newer than it. Encode
// panics if these do not hold, or if there are no rows or more than [MaxRows].
// Nothing is allocated while dst has room.
func (c *Coder) Encode(dst []byte, free uint, rows []*Row, newest, base uint64, hasBase bool, s *State, known *Frames) []byte {
	most := room(newest, base, hasBase)
	if len(rows) == 0 || len(rows) > most {
		panic("adaptive: more rows than the payload can have, or none")
	}
	v, l := s.open(newest, base, hasBase, known)
	if l == nil {
		panic("adaptive: encode against a baseline that is not known")
	}
	c.m = s.m
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
			c.fill(&v, seq, ref)
			c.encodeRow(row, l)
		}
		ref = seq
		if i == 0 {
			c.oldest = c.enc.Bits()
		}
	}
	return c.enc.Finish()
}

func (c *Coder) encodeRow(row *Row, l *live) {
	p := &c.p
	p.compare(row)
	c.s = surprise{}
	var last, bits changes
	for i := range c.m.groups {
		g := &c.m.groups[i]
		lg := &l.groups[i]
		x := p.changesOf(g) | last | bits
		changed := x&movedNow != 0
		if g.counts && lg.stepping() {
			changed = !c.m.steps(p, g, row)
		}
		c.enc.Narrow(changed, 1<<16-lg.w.odds(lg.bias[p.class], x))
		c.enc.Settle()
		last = toldBy(changed)
		if !changed {
			continue
		}
		switch g.form {
		case formNumbers:
			c.encodeNumbers(row.Ints, g, l)
		case formQuat:
			c.encodeQuat(row.Ints, g, l)
		case formBits:
			c.encodeBits(row.Ints, g, l)
			bits = pressed
		case formBytes:
			l.counters.blobs[g.index].encode(&c.enc, g, row.Bytes[g.blob], p.base[g.blob], p.prev[g.blob])
		}
	}
}

func (c *Coder) encodeNumbers(ints []int32, g *group, l *live) {
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
			c.enc.Narrow(v != base, 1<<16-lc.flag.w.odds(lc.flag.bias, x))
			c.enc.Settle()
			last = toldBy(v != base)
			if v == base {
				continue
			}
		}
		any = any || v != base
		if cp.list >= 0 && c.encodeListed(&l.lists[cp.list].frequent, v, base) {
			continue
		}
		pred, x := c.forecast(l, ints, g, cp, lc, k)
		r := wrapTo(int64(v)-int64(pred), cp.wrap)
		c.s.note(encodeResidual(&c.enc, c.m.tables, x, r), x.at)
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

func (c *Coder) encodeBits(ints []int32, g *group, l *live) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		bi = c.encodeSet(uint32(ints[cp.at]), cp, l, bi)
	}
}

// encodeSet codes a component of a bit set whose first bit has the index bi, and gives
// the index after its last.
func (c *Coder) encodeSet(v uint32, cp *comp, l *live, bi int) int {
	o := uint32(c.p.b[cp.at])
	recent := o ^ uint32(c.p.h1[cp.at])
	v ^= o
	for j := range cp.wrap {
		c.enc.Bit(v>>j&1 == 1, uint32(l.counters.bits[bi][o>>j&1|recent>>j&1<<1]))
		bi++
	}
	return bi
}

// Chances of 65536: that a wrong guess of the index means the next likely one,
// and the second next.
const (
	nextIndex   = 59536
	secondIndex = 49536
)

// wants are the features that a quaternion's experts read.
func (l *live) wants(g *group, p *past) uint {
	want := uint(1)
	for k := range g.comps {
		c := &l.comps[g.first+k]
		want |= wanted[g.family][c.in[p.lo].expert&3] | wanted[g.family][c.in[p.hi].expert&3]
	}
	return want
}

func (c *Coder) encodeQuat(ints []int32, g *group, l *live) {
	p := &c.p
	want := l.wants(g, p)
	c.q.prepare(p, ints, g, want)
	idx := int(ints[g.at]) & 3
	c.encodeIndex(idx, g, l)
	c.q.express(g, idx, want)
	c.s.near = 0
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		lc := &l.comps[g.first+k]
		off := p.turn(&c.q.feats[k], g, lc)
		pred := int64(cp.fit(c.q.hold[k] + off))
		r := int64(ints[cp.at]) - pred
		x := lc.expect(p, &c.s, off)
		c.s.note(encodeResidual(&c.enc, c.m.tables, x, r), x.at)
	}
}

func (c *Coder) encodeIndex(idx int, g *group, l *live) {
	c.enc.Bit(idx != c.q.index, uint32(l.counters.index[g.index][c.q.sure]))
	if idx == c.q.index {
		return
	}
	o := c.q.others()
	c.enc.Bit(idx != o[0], nextIndex)
	if idx != o[0] {
		c.enc.Bit(idx != o[1], secondIndex)
	}
}
