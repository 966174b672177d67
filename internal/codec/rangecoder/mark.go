package rangecoder

import "math/bits"

// CopyFrom makes e what o is, with a buffer of its own: to go back to it later.
func (e *Encoder) CopyFrom(o *Encoder) {
	buf := append(e.buf[:0], o.buf...)
	*e = *o
	e.buf = buf
}

// BitsQ8 is how many bits the decisions so far take, in 1/256 of a bit, to about a sixteenth of one; integers only, so that
// what is coded may depend on it.
func (e *Encoder) BitsQ8() int {
	zeros := bits.LeadingZeros64(e.rng)
	part := e.rng << zeros << 1 >> 56 // what the range has above a power of two, of 256
	return (8*(len(e.buf)-e.start)+zeros+1)<<8 - int(part)
}
