package rangecoder

// Coder is either half of the range coder, so that one walk through a payload serves both ends. Reset the half that
// is used. While encoding, a method takes what is coded and gives it back; while decoding it gives what was coded, whatever it
// is given.
type Coder struct {
	Enc      Encoder
	Dec      Decoder
	Decoding bool
	slowest  uint16
}

// NewCoder makes a coder whose chances no longer adapt slower after so many decisions, at most [MaxCount].
func NewCoder(slowest uint16, decoding bool) Coder {
	return Coder{slowest: slowest, Decoding: decoding}
}

// Bit codes a decision by a chance, which learns it.
func (c *Coder) Bit(p *Prob, b bool) bool {
	p0 := Scale - uint32(p.P)
	if c.Decoding {
		b = c.Dec.BitNoRenorm(p0)
		c.Dec.Renorm()
	} else {
		c.Enc.BitNoRenorm(b, p0)
		c.Enc.Renorm()
	}
	p.learn(b, c.slowest)
	return b
}

// Raw codes the low n bits of v, n at most 64, each value alike.
func (c *Coder) Raw(v uint64, n uint) uint64 {
	if c.Decoding {
		return c.Dec.Raw(n)
	}
	c.Enc.Raw(v, n)
	return v
}
