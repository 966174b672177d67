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
// slowly, and not at all; and what they lead to expect: log2 in Q10 of Q6.
type errorScale struct{ fast, slow, last, expected int32 }

// settle sets the expected magnitude.
func (s *errorScale) update() {
	s.expected = log2((int64(s.fast)*2 + int64(s.slow)*4 + int64(s.last)) / 28)
}

// learn takes a magnitude in Q4. What is far beyond the average counts as
// eight times it, so that a teleport does not break the scale.
func (s *errorScale) learn(a int64) {
	const limit = 1 << 30
	a = min(a, limit>>4) << 4
	v := int32(min(a, 8*int64(s.fast)+8<<8))
	s.fast += (v - s.fast) / 4
	v = int32(min(a, 8*int64(s.slow)+8<<8))
	s.slow += (v - s.slow) / 24
	s.last = int32(a)
	s.update()
}

// rest is learned where a component did not change.
func (s *errorScale) decay() {
	s.last -= s.last >> 3
	s.update()
}

// least is the least expected magnitude: an eighth of a step, log2 in Q10 of Q6.
const minExpected = 3 << 10

// level turns an expected magnitude, log2 in Q10 of Q6 and at least [least], into
// a table row and a shift.
func tableFor(at int32) (row int, shift uint) {
	row = int(at-minExpected) >> 8
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

// magnitudes are those of symbols, log2 in Q10 of Q6; that of 0 is a third of a step.
var magnitudes = func() (t [symbols]int32) {
	for i := range t {
		base, extra := fromSymbol(i)
		t[i] = log2(int64(base+(1<<extra-1)/2)<<6 + 19)
	}
	return t
}()

// log2 is log2(x+1) in Q10, piecewise linear; x is at least 0.
func log2(x int64) int32 {
	x++
	n := bits.Len64(uint64(x)) - 1
	return int32(n<<10 | int(uint64(x)<<(uint(63-n)&63)>>53&1023))
}
