package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

const (
	levels  = 48 // quarter octaves of the expected magnitude
	symbols = entropy.Symbols
	shapes  = 3 // light to heavy tails
)

// scale is a component's lately seen error magnitudes, Q8, averaged fast,
// slowly, and not at all; and what they lead to expect, Q6.
type scale struct{ fast, slow, last, expected int32 }

// settle sets the expected magnitude.
func (s *scale) settle() {
	s.expected = int32((int64(s.fast)*2 + int64(s.slow)*2 + int64(s.last)) / 20)
}

// learn takes a magnitude in Q4. What is far beyond the average counts as
// eight times it, so that a teleport does not break the scale.
func (s *scale) learn(a int64) {
	const limit = 1 << 30
	a = min(a, limit>>4) << 4
	v := int32(min(a, 8*int64(s.fast)+8<<8))
	s.fast += (v - s.fast) / 4
	v = int32(min(a, 8*int64(s.slow)+8<<8))
	s.slow += (v - s.slow) / 24
	s.last = int32(a)
	s.settle()
}

// rest is learned where a component did not change.
func (s *scale) rest() {
	s.last -= s.last >> 3
	s.settle()
}

// level turns an expected magnitude in Q6 into a table row and a shift.
func level(est int64) (row int, shift uint) {
	est = max(est, 8)
	e := bits.Len64(uint64(est)) - 1
	row = (e-3)*4 + int(est>>(uint(e-2)&63)&3)
	if row >= levels {
		shift = uint(row-levels)/4 + 1
		row -= int(shift) * 4
	}
	return row, shift
}

// symbolOf splits a magnitude below 2^32 into its symbol, half octaves, and
// the number of bits that choose within it.
func symbolOf(m uint64) (sym int, extra uint) {
	if m < 2 {
		return int(m), 0
	}
	e := bits.Len64(m) - 1
	return 2*e + int(m>>(uint(e-1)&63)&1), uint(e - 1)
}

func fromSymbol(sym int) (base uint64, extra uint) {
	if sym < 2 {
		return uint64(sym), 0
	}
	e := uint(sym / 2)
	return 1<<e | uint64(sym&1)<<(e-1), e - 1
}

// log2 is log2(x+1) in Q10, piecewise linear; x is at least 0.
func log2(x int64) int32 {
	x++
	n := bits.Len64(uint64(x)) - 1
	return int32(n<<10 | int(uint64(x)<<(uint(63-n)&63)>>53&1023))
}
