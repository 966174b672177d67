package rangecoder

// Coder encodes or decodes, so that one function serves both directions. Reset the half that is
// used. While encoding, a method codes its argument and returns it; while decoding, it ignores the
// argument and returns the decoded value.
type Coder struct {
	Enc      Encoder
	Dec      Decoder
	Decoding bool
	maxCount uint16
}

// NewCoder returns a coder whose probabilities adapt at a constant rate after maxCount decisions,
// at most [MaxCount].
func NewCoder(maxCount uint16, decoding bool) Coder {
	return Coder{maxCount: maxCount, Decoding: decoding}
}

// Bit codes a decision with probability p, and adapts p.
func (c *Coder) Bit(p *Prob, b bool) bool {
	p0 := Scale - uint32(p.P)
	if c.Decoding {
		b = c.Dec.BitNoRenorm(p0)
		c.Dec.Renorm()
	} else {
		c.Enc.BitNoRenorm(b, p0)
		c.Enc.Renorm()
	}
	p.learn(b, c.maxCount)
	return b
}

// Raw codes the low n bits of v, 0 to 64, each with probability 1/2.
func (c *Coder) Raw(v uint64, n uint) uint64 {
	if c.Decoding {
		return c.Dec.Raw(n)
	}
	c.Enc.Raw(v, n)
	return v
}
