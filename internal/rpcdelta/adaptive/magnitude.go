package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	levels  = 48 // frequency tables of a set: quarter octaves of the expected magnitude
	symbols = rangecoder.Symbols
	shapes  = 3 // sets of tables, in order of increasing tail weight
)

// errorScale tracks the magnitudes of a component's errors in Q8: a fast average, a slow average
// and the last error. expected is the expected magnitude, as log2 in Q10 of a value in Q6.
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

// decay lowers the scale after a frame in which the component did not change.
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

// symbolOf returns the symbol of a magnitude below 2^32, which covers half an octave, and the
// number of raw bits that select the magnitude within the symbol.
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

// magnitudes is the mean magnitude of each symbol, as log2 in Q10 of a value in Q6. Symbol 0 counts
// as a third of a step.
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

// residualContext summarizes the previous residuals of the frame, as context for the next one.
// Magnitudes are log2 in Q10 of a value in Q6.
type residualContext struct {
	near int32 // magnitude of the previous residual in the field, or 0
	run  int32 // running mean of actual minus expected magnitudes
}

// Limits of the contexts.
const (
	maxExcess  = 3 << 10 // largest contribution of one residual to run
	maxContext = 4 << 10 // maximum of near and offset
)

// observe adds a residual with the given actual and expected magnitude.
func (s *residualContext) observe(magnitude, expected int32) {
	s.near = magnitude
	s.run += (max(-maxExcess, min(maxExcess, magnitude-expected)) - s.run) >> 2
}

// inputs returns the terms that adjust an expected magnitude: the previous residual of the field,
// the residuals of the frame, and the predicted offset from the reference, off.
func (s *residualContext) inputs(expected int32, off int64) (near, run, offset int32) {
	if s.near != 0 {
		near = max(-maxContext, min(maxContext, s.near-expected))
	}
	offset = max(-maxContext, min(maxContext, log2(max(off, -off)<<6+19)-expected))
	return near, s.run, offset
}

// contextWeights are the weights of the terms, Q12.
type contextWeights struct{ near, run, offset int16 }

// Limits of a context weight, and its step per bit saved.
const (
	contextRate      = 2
	minContextWeight = -1 << 12
	maxContextWeight = 2 << 12
)

// adjust returns the expected magnitude after adding the weighted contexts.
func (w *contextWeights) adjust(expected, near, run, offset int32) int32 {
	return max(minExpected, expected+(near*int32(w.near)+run*int32(w.run)+offset*int32(w.offset))>>12)
}

// learn moves the weights. gain is the number of bits, Q10, that a larger magnitude would have
// saved.
func (w *contextWeights) learn(gain, near, run, offset int32) {
	w.near = movedWeight(w.near, gain*near)
	w.run = movedWeight(w.run, gain*run)
	w.offset = movedWeight(w.offset, gain*offset)
}

func movedWeight(w int16, d int32) int16 {
	return int16(max(minContextWeight, min(maxContextWeight, int32(w)+(d*contextRate+1<<15)>>16)))
}

// expectation is the expected distribution of a residual.
type expectation struct {
	magnitude int32 // log2 in Q10 of Q6
	shape     uint8 // set of tables
}
