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
			b := row.Bytes[g.blob]
			if g.minBytes < g.maxBytes {
				encodeLength(&c.enc, g, len(b))
			}
			for _, v := range b {
				c.enc.Raw(uint64(v), 8)
			}
		}
	}
}

// IntraBytes is how many bytes a payload of row alone takes.
func (m *Model) IntraBytes(row *Row) int {
	s := size{bits: 1} // one row
	for i := range m.groups {
		g := &m.groups[i]
		switch g.form {
		case formNumbers:
			s.numbers(m, g, row.Ints)
		case formQuat:
			s.raw(uint64(row.Ints[g.at]), 2)
			for _, v := range row.Ints[g.at+1 : g.at+4] {
				s.raw(uint64(v+g.limit), g.width)
			}
		case formBits:
			for k := range g.comps {
				s.plain(row.Ints, &m.sets[g.first+k])
			}
		case formBytes:
			b := row.Bytes[g.blob]
			if g.minBytes < g.maxBytes {
				s.raw(uint64(len(b)-g.minBytes), uint(bits.Len(uint(g.maxBytes-g.minBytes))))
			}
			for _, v := range b {
				s.raw(uint64(v), 8)
			}
		}
	}
	return int(s.used+7) / 8
}

// size counts the bits of the static code, and those up to the last that is set,
// since the zeros at the end of a payload are left out.
type size struct{ bits, used uint }

func (s *size) raw(v uint64, n uint) {
	s.bits += n
	if v != 0 {
		s.used = s.bits - uint(bits.TrailingZeros64(v))
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (s *size) plain(ints []int32, cp *comp) {
	v := uint32(ints[cp.at])
	s.raw(bit(v != 0), 1)
	if v != 0 && cp.wrap > 1 {
		s.raw(uint64(v), cp.wrap)
	}
}

func (s *size) numbers(m *Model, g *group, ints []int32) {
	if m.comps[g.first].bare {
		for k := range g.comps {
			s.plain(ints, &m.comps[g.first+k])
		}
		return
	}
	n, signs := m.length(g, ints), m.signs(g)
	s.raw(uint64(n), uint(bits.Len(m.longest(g))))
	if n == 0 {
		return
	}
	for k := range g.comps {
		cp := &m.comps[g.first+k]
		v := cp.whole(ints[cp.at])
		s.raw(uint64(max(v, -v)), n)
		if signs && v != 0 {
			s.raw(bit(v < 0), 1)
		}
	}
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

// longest is the most bits that a magnitude in the group has.
func (m *Model) longest(g *group) uint {
	n := 0
	for _, cp := range m.comps[g.first : g.first+g.comps] {
		if cp.wrap > 0 {
			n = max(n, int(cp.wrap))
		} else {
			n = max(n, bits.Len64(uint64(max(cp.hi, -cp.lo, 0))))
		}
	}
	return uint(n)
}

// signs says whether the group's components can be negative.
func (m *Model) signs(g *group) bool {
	cp := &m.comps[g.first+g.comps-1]
	return cp.signed || cp.wrap == 0 && cp.lo < 0
}

// length is how many bits the longest of the group's magnitudes has.
func (m *Model) length(g *group, ints []int32) uint {
	n := 0
	for k := range g.comps {
		cp := &m.comps[g.first+k]
		v := cp.whole(ints[cp.at])
		n = max(n, bits.Len64(uint64(max(v, -v))))
	}
	return uint(n)
}

func (c *Coder) packNumbers(ints []int32, g *group) {
	if c.m.comps[g.first].bare {
		for k := range g.comps {
			c.packPlain(ints, &c.m.comps[g.first+k])
		}
		return
	}
	n, signs := c.m.length(g, ints), c.m.signs(g)
	c.enc.Raw(uint64(n), uint(bits.Len(c.m.longest(g))))
	if n == 0 {
		return
	}
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		v := cp.whole(ints[cp.at])
		c.enc.Raw(uint64(max(v, -v)), n)
		if signs && v != 0 {
			c.enc.Bit(v < 0, 1<<15)
		}
	}
}

func (c *Coder) unpackNumbers(ints []int32, g *group) error {
	if c.m.comps[g.first].bare {
		for k := range g.comps {
			c.unpackPlain(ints, &c.m.comps[g.first+k])
		}
		return nil
	}
	most := c.m.longest(g)
	n := uint(c.dec.Raw(uint(bits.Len(most))))
	if n > most {
		return ErrMalformed
	}
	signs := c.m.signs(g)
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		v := int64(c.dec.Raw(n))
		if signs && v != 0 && c.dec.Bit(1<<15) {
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
