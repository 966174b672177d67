package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	levels  = 48 // frequency tables of a set: quarter octaves of the expected magnitude
	symbols = rangecoder.Symbols
	shapes  = 3 // sets of tables, from light to heavy tails
)

// errorScale tracks the magnitudes of a component's errors in Q8: a fast average, a slow average
// and the last one; and the expected magnitude, log2 in Q10 of Q6.
type errorScale struct{ fast, slow, last, expected int32 }

// update sets the expected magnitude.
func (s *errorScale) update() {
	s.expected = log2((int64(s.fast)*2 + int64(s.slow)*4 + int64(s.last)) / 28)
}

// learn adds the magnitude a, in Q4. Outliers are limited to eight times the average, so that a
// teleport does not spoil the averages.
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

// decay learns that the component did not change.
func (s *errorScale) decay() {
	s.last -= s.last >> 3
	s.update()
}

// minExpected is the minimum expected magnitude, an eighth of a step: log2 in Q10 of Q6.
const minExpected = 3 << 10

// tableFor returns the frequency table for an expected magnitude of at least [minExpected], and the
// number of low bits of the residual that are sent raw.
func tableFor(magnitude int32) (row int, shift uint) {
	row = int(magnitude-minExpected) >> 8
	if row >= levels {
		shift = uint(row-levels)/4 + 1
		row -= int(shift) * 4
	}
	return row, shift
}

// symbolOf returns the symbol, a half octave, of a magnitude below 2^32, and the number of raw bits
// that choose a magnitude within it.
func symbolOf(m uint64) (sym int, extra uint) {
	if m < 2 {
		return int(m), 0
	}
	e := bits.Len64(m) - 1
	return 2*e + int(m>>(uint(e-1)&63)&1), uint(e - 1)
}

// fromSymbol returns the smallest magnitude of a symbol and its number of raw bits.
func fromSymbol(sym int) (base uint64, extra uint) {
	if sym < 2 {
		return uint64(sym), 0
	}
	e := uint(sym / 2)
	return 1<<e | uint64(sym&1)<<(e-1), e - 1
}

// magnitudes is the mean magnitude of each symbol: log2 in Q10 of Q6; a third of a step for 0.
var magnitudes = func() (t [symbols]int32) {
	for i := range t {
		base, extra := fromSymbol(i)
		t[i] = log2(int64(base+(1<<extra-1)/2)<<6 + 19)
	}
	return t
}()

// log2 returns log2(x+1) in Q10, piecewise linear, for x of at least 0.
func log2(x int64) int32 {
	x++
	n := bits.Len64(uint64(x)) - 1
	return int32(n<<10 | int(uint64(x)<<(uint(63-n)&63)>>53&1023))
}
