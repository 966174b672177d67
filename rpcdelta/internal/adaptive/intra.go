package adaptive

import "math/bits"

// A frame without baseline is packed by a static code: fields of numbers as
// the length of the longest component and then each in that many bits.

func (c *Coder) encodeIntra(row *Row) {
	for i := range c.m.groups {
		g := &c.m.groups[i]
		switch g.form {
		case formNumbers:
			c.packNumbers(row.Ints, g)
		case formQuat:
			c.enc.Raw(uint64(row.Ints[g.at]), 2)
			for _, v := range row.Ints[g.at+1 : g.at+4] {
				c.enc.Raw(uint64(v+g.limit), g.width)
			}
		case formBits:
			for k := range g.comps {
				c.packPlain(row.Ints, &c.m.sets[g.first+k])
			}
		case formBytes:
			c.packBytes(row.Bytes[g.blob], g)
		}
	}
}

func (c *Coder) packBytes(b []byte, g *group) {
	if g.minBytes < g.maxBytes {
		encodeLength(&c.enc, g, len(b))
	}
	for _, v := range b {
		c.enc.Raw(uint64(v), 8)
	}
}

// IntraBytes is about how many bytes a payload of row alone takes: one too many at
// most, and a few too few where it ends in zeros.
func (m *Model) IntraBytes(row *Row) int {
	s := size{bits: 1} // one row
	for i := range m.groups {
		g := &m.groups[i]
		switch g.form {
		case formNumbers:
			if g.bare {
				s.plain(row.Ints, m.comps[g.first:][:g.comps])
			} else {
				s.numbers(row.Ints, m.comps[g.first:][:g.comps], g)
			}
		case formQuat:
			s.quat(row.Ints[g.at:][:4], g)
		case formBits:
			s.plain(row.Ints, m.sets[g.first:][:g.comps])
		case formBytes:
			s.bytes(row.Bytes[g.blob], g)
		}
	}
	return int(s.used-uint(bits.TrailingZeros32(s.last))+7) / 8
}

// LeastIntra is a number of bytes that IntraBytes does not stay below, found
// sooner: what stands before the last component of the last group in which that one
// is not sent as zeros.
func (m *Model) LeastIntra(row *Row) int {
	for i := len(m.groups) - 1; i >= 0; i-- {
		g := &m.groups[i]
		if g.n == 0 || row.Ints[g.at+g.n-1] == -g.limit {
			continue
		}
		before := g.before
		if g.form == formQuat {
			before += 2 + 2*g.width
		}
		return int(before+8) / 8
	}
	return 0
}

// leastBits is what the static code of a group takes at least.
func (g *group) leastBits() uint {
	switch g.form {
	case formNumbers:
		if g.bare {
			return uint(g.n)
		}
		return g.lengthBits
	case formQuat:
		return 2 + 3*g.width
	case formBits:
		return uint(g.n)
	case formBytes:
		return uint(8 * g.minBytes)
	}
	return 0
}

// size counts the bits of the static code, and those up to the last value that is
// not 0, since the zeros at the end of a payload are left out.
type size struct {
	bits, used uint
	last       uint32 // that value
}

// upTo says that v, which is not 0, ends here.
func (s *size) upTo(v uint32) { s.used, s.last = s.bits, v }

func (s *size) quat(ints []int32, g *group) {
	s.bits += 2
	if ints[0] != 0 {
		s.upTo(uint32(ints[0]))
	}
	for _, v := range ints[1:] {
		s.bits += g.width
		if v != -g.limit {
			s.upTo(uint32(v + g.limit))
		}
	}
}

func (s *size) plain(ints []int32, comps []comp) {
	for i := range comps {
		s.bits++
		v := ints[comps[i].at]
		switch w := comps[i].wrap; {
		case v == 0:
		case w > 1:
			s.bits += w
			s.upTo(uint32(v))
		default:
			s.upTo(1)
		}
	}
}

func (s *size) numbers(ints []int32, comps []comp, g *group) {
	n := lengthOf(ints, comps)
	s.bits += g.lengthBits
	if n == 0 {
		return
	}
	s.upTo(uint32(n))
	for i := range comps {
		s.bits += n
		v := ints[comps[i].at]
		if v == 0 {
			continue
		}
		s.upTo(uint32(v))
		if g.signs {
			s.bits++
		}
		if g.signs && v < 0 {
			s.upTo(1)
		}
	}
}

func (s *size) bytes(b []byte, g *group) {
	if g.minBytes < g.maxBytes {
		s.bits += uint(bits.Len(uint(g.maxBytes - g.minBytes)))
		if n := len(b) - g.minBytes; n != 0 {
			s.upTo(uint32(n))
		}
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			s.used, s.last = s.bits+8*uint(i+1), uint32(b[i])
			break
		}
	}
	s.bits += 8 * uint(len(b))
}

func (c *Coder) decodeIntra(row *Row) error {
	for i := range c.m.groups {
		g := &c.m.groups[i]
		var err error
		switch g.form {
		case formNumbers:
			err = c.unpackNumbers(row.Ints, g)
		case formQuat:
			err = c.unpackQuat(row.Ints, g)
		case formBits:
			for k := range g.comps {
				c.unpackPlain(row.Ints, &c.m.sets[g.first+k])
			}
		case formBytes:
			n := g.minBytes
			if g.minBytes < g.maxBytes {
				n, err = decodeLength(&c.dec, g)
			}
			b := row.Bytes[g.blob][:0]
			for range n {
				b = append(b, byte(c.dec.Raw(8)))
			}
			row.Bytes[g.blob] = b
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole is the value of an unwrapped or sign-extended component.
func (c *comp) whole(v int32) int64 {
	if c.wrap == 0 || c.signed {
		return int64(v)
	}
	return int64(uint32(v))
}

// staticCode notes how the group's numbers are packed.
func (g *group) staticCode(comps []comp) {
	longest := 0
	for _, c := range comps {
		if c.wrap > 0 {
			longest = max(longest, int(c.wrap))
		} else {
			longest = max(longest, bits.Len64(uint64(max(c.hi, -c.lo, 0))))
		}
	}
	last := &comps[len(comps)-1]
	g.longest, g.lengthBits = uint(longest), uint(bits.Len(uint(longest)))
	g.signs = last.signed || last.wrap == 0 && last.lo < 0
}

// lengthOf is how many bits the longest of the magnitudes has.
func lengthOf(ints []int32, comps []comp) uint {
	all := uint64(0)
	for i := range comps {
		v := comps[i].whole(ints[comps[i].at])
		all |= uint64(max(v, -v))
	}
	return uint(bits.Len64(all))
}

func (c *Coder) packNumbers(ints []int32, g *group) {
	n := c.packLength(ints, g)
	for k := range g.comps {
		c.packNumber(ints, g, &c.m.comps[g.first+k], n)
	}
}

// packLength codes the length that the group's magnitudes share, and gives it; bare
// ones share none.
func (c *Coder) packLength(ints []int32, g *group) uint {
	if g.bare {
		return 0
	}
	n := lengthOf(ints, c.m.comps[g.first:][:g.comps])
	c.enc.Raw(uint64(n), g.lengthBits)
	return n
}

// packNumber codes a component whose magnitude has n bits at most.
func (c *Coder) packNumber(ints []int32, g *group, cp *comp, n uint) {
	if g.bare {
		c.packPlain(ints, cp)
		return
	}
	v := cp.whole(ints[cp.at])
	c.enc.Raw(uint64(max(v, -v)), n)
	if g.signs && v != 0 {
		c.enc.Bit(v < 0, 1<<15)
	}
}

func (c *Coder) unpackNumbers(ints []int32, g *group) error {
	if g.bare {
		for k := range g.comps {
			c.unpackPlain(ints, &c.m.comps[g.first+k])
		}
		return nil
	}
	n := uint(c.dec.Raw(g.lengthBits))
	if n > g.longest {
		return ErrMalformed
	}
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		v := int64(c.dec.Raw(n))
		if g.signs && v != 0 && c.dec.Bit(1<<15) {
			v = -v
		}
		x := cp.fit(v)
		if cp.whole(x) != v {
			return ErrMalformed
		}
		ints[cp.at] = x
	}
	return nil
}

// packPlain codes a component as one bit if it is 0, all its bits otherwise.
func (c *Coder) packPlain(ints []int32, cp *comp) {
	v := uint32(ints[cp.at])
	c.enc.Bit(v != 0, 1<<15)
	if v != 0 && cp.wrap > 1 {
		c.enc.Raw(uint64(v), cp.wrap)
	}
}

func (c *Coder) unpackPlain(ints []int32, cp *comp) {
	v := uint64(0)
	if c.dec.Bit(1 << 15) {
		v = 1
		if cp.wrap > 1 {
			v = c.dec.Raw(cp.wrap)
		}
	}
	ints[cp.at] = int32(uint32(v))
}

func (c *Coder) unpackQuat(ints []int32, g *group) error {
	ints[g.at] = int32(c.dec.Raw(2))
	for i := range 3 {
		v := c.dec.Raw(g.width)
		if v > uint64(2*g.limit) {
			return ErrMalformed
		}
		ints[g.at+1+i] = int32(v) - g.limit
	}
	return nil
}
