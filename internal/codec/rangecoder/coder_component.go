package rangecoder

import "math/bits"

// Store sets a decoded component. It does nothing while encoding, because encoders of several
// players read the same components concurrently.
func (c *Coder) Store(component *int32, v int32) {
	if c.Decoding {
		*component = v
	}
}

// Check returns v, or lo and sets Bad if it is out of bounds.
func (c *Coder) Check(v int64, lo, hi int32) int32 {
	if v < int64(lo) || v > int64(hi) {
		c.Bad = true
		return lo
	}
	return int32(v)
}

// Uniform codes v with equal probabilities within its bounds.
func (c *Coder) Uniform(v, lo, hi int32) int32 {
	x := c.Raw(uint64(int64(v)-int64(lo)), uint(bits.Len32(uint32(hi-lo))))
	return c.Check(int64(lo)+int64(x), lo, hi)
}

// Predicted codes a bounded component as its difference from guess, which is in Q4, and returns
// that difference in Q4. See [Coder.Int] for the other arguments.
func (c *Coder) Predicted(m *IntModel, level, sign int, guess int64, component *int32, lo, hi int32) int64 {
	v := (guess + 8) >> 4
	v += c.Int(m, level, sign, int64(*component)-v)
	c.Store(component, c.Check(v, lo, hi))
	return int64(*component)*16 - guess
}

// Byte returns byte i of a byte string in components. The first component is the length. Each of
// the others holds four bytes, low byte first, padded with zeros.
func Byte(row []int32, i int) byte { return byte(uint32(row[1+i/4]) >> (8 * (i % 4))) }

// SetByte sets byte i of a byte string. The byte must be zero before.
func SetByte(row []int32, i int, b byte) { row[1+i/4] |= int32(uint32(b) << (8 * (i % 4))) }

// StoreByte is Store for a byte of a byte string.
func (c *Coder) StoreByte(row []int32, i int, b byte) {
	if c.Decoding {
		SetByte(row, i, b)
	}
}

// StoreLength is Store for the length of a byte string, whose bytes it sets to zero.
func (c *Coder) StoreLength(row []int32, n int32) {
	if c.Decoding {
		clear(row)
		row[0] = n
	}
}

// Bytes codes a byte string of lo to hi bytes with equal probabilities.
func (c *Coder) Bytes(row []int32, lo, hi int32) {
	n := c.Uniform(row[0], lo, hi)
	c.StoreLength(row, n)
	for i := range int(n) {
		c.StoreByte(row, i, byte(c.Raw(uint64(Byte(row, i)), 8)))
	}
}
