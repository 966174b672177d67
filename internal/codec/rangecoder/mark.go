package rangecoder

import "math/bits"

// CopyFrom copies the state of o, with a buffer of its own, to return to it later.
func (e *Encoder) CopyFrom(o *Encoder) {
	buf := append(e.buf[:0], o.buf...)
	*e = *o
	e.buf = buf
}

// BitsQ8 returns the size of the decisions so far in 1/256 bit, accurate to about 1/16 bit. It uses
// integers only: what is coded may depend on it.
func (e *Encoder) BitsQ8() int {
	zeros := bits.LeadingZeros64(e.rng)
	part := e.rng << zeros << 1 >> 56 // what the range has above a power of two, of 256
	return (8*(len(e.buf)-e.start)+zeros+1)<<8 - int(part)
}
