package rangecoder

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Encoder appends one payload to a buffer. Call Reset before use.
type Encoder struct {
	buf    []byte
	start  int // offset of the payload in buf
	shared int // 1 if the first byte of the payload also holds bits before the payload
	low    uint64
	over   uint64 // carry: 1 if low overflowed since the last shift, so the bytes in buf must be incremented by one
	rng    uint64
}

// Reset starts a payload at the end of dst. If free, 0 to 7, is not 0, the payload starts in that
// many low bits of the last byte of dst, which must be zero.
func (e *Encoder) Reset(dst []byte, free uint) {
	e.buf, e.start, e.shared = dst, len(dst), 0
	e.low, e.over, e.rng = 0, 0, 1<<64-1
	if free > 0 {
		e.start, e.shared = len(dst)-1, 1
		e.buf = dst[:e.start]
		e.low, e.rng = uint64(dst[e.start])<<56, 1<<(56+free&63)
	}
}

// BitNoRenorm codes one decision; p0 is the frequency of 0, in 1 to Scale-1. Renorm must follow.
// They are two methods because the compiler inlines each of them, but not one that does both.
func (e *Encoder) BitNoRenorm(bit bool, p0 uint32) {
	t := (e.rng >> ScaleBits) * uint64(p0)
	below, rng := uint64(0), t
	if bit {
		below = t
	}
	if bit {
		rng = e.rng - t
	}
	e.rng = rng
	e.add(below)
}

// Renorm widens the range to the minimum that the next decision needs.
func (e *Encoder) Renorm() {
	if e.rng < least {
		e.shift()
	}
}

// Symbol codes symbol s of t, below [Symbols].
func (e *Encoder) Symbol(t *Table, s int) {
	r := e.rng >> ScaleBits
	s &= Symbols - 1
	e.add(r * uint64(t.cum[s]))
	e.rng = r * uint64(t.cum[s+1]-t.cum[s])
	e.Renorm()
}

// SymbolRaw codes symbol s of t and then the low n bits of v, as Symbol and Raw do.
func (e *Encoder) SymbolRaw(t *Table, s int, v uint64, n uint) {
	r := e.rng >> ScaleBits
	s &= Symbols - 1
	below, rng := r*uint64(t.cum[s]), r*uint64(t.cum[s+1]-t.cum[s])
	if rng < least || n > ScaleBits {
		e.add(below)
		e.rng = rng
		e.Renorm()
		e.Raw(v, n)
		return
	}
	rng >>= n & 63
	e.rng = rng
	e.add(below + rng*(v&(1<<(n&63)-1)))
	e.Renorm()
}

// Raw codes the low n bits of v, 0 to 64, each with probability 1/2.
func (e *Encoder) Raw(v uint64, n uint) {
	for n > 0 {
		k := min(n, ScaleBits)
		n -= k
		e.rng >>= k & 63
		e.add(e.rng * (v >> (n & 63) & (1<<(k&63) - 1)))
		e.Renorm()
	}
}

// Bits returns the size of the decisions so far in bits, rounded down. Earlier bits in a shared
// first byte count too.
func (e *Encoder) Bits() int { return 8*(len(e.buf)-e.start) + bits.LeadingZeros64(e.rng) }

func (e *Encoder) add(x uint64) {
	low, over := bits.Add64(e.low, x, 0)
	e.low = low
	e.over += over
}

// shift is called rarely. It is not inlined, so that its callers can be inlined.
//
//go:noinline
func (e *Encoder) shift() {
	e.carry()
	e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(e.low>>stepBits))
	e.low <<= stepBits
	e.rng <<= stepBits
}

func (e *Encoder) carry() {
	if e.over == 0 {
		return
	}
	e.over = 0
	for i := len(e.buf) - 1; i >= e.start; i-- {
		e.buf[i]++
		if e.buf[i] != 0 {
			return
		}
	}
}

// Finish ends the payload with the fewest bytes that decode to the same decisions, and returns the
// buffer.
func (e *Encoder) Finish() []byte {
	for k := uint(0); k <= 8; k++ {
		m := uint64(1)<<(64-8*k) - 1
		v, over := bits.Add64(e.low, m, 0)
		v &^= m
		if v-e.low >= e.rng {
			continue
		}
		e.over += over
		e.carry()
		for i := range k {
			e.buf = append(e.buf, byte(v>>(56-8*i)))
		}
		break
	}
	n, end := len(e.buf), e.start+e.shared
	for n > end && e.buf[n-1] == 0 {
		n--
	}
	if n < end {
		return append(e.buf, 0)
	}
	return e.buf[:n]
}

// Cost returns the size of the decisions so far in bits, with fractions. Earlier bits in a shared
// first byte count too. It is for measurements: coded values must not depend on its floating point.
func (e *Encoder) Cost() float64 {
	return float64(8*(len(e.buf)-e.start)) + 64 - math.Log2(float64(e.rng))
}

// CopyFrom copies the state and the buffer of o, so that coding can return to this state later.
func (e *Encoder) CopyFrom(o *Encoder) {
	buf := append(e.buf[:0], o.buf...)
	*e = *o
	e.buf = buf
}

// BitsQ8 returns the size of the decisions so far in 1/256 bit, accurate to about 1/16 bit. It uses
// integers only, so coded values may depend on it.
func (e *Encoder) BitsQ8() int {
	zeros := bits.LeadingZeros64(e.rng)
	part := e.rng << zeros << 1 >> 56 // fraction of the range above its highest power of two, in 1/256
	return (8*(len(e.buf)-e.start)+zeros+1)<<8 - int(part)
}
