package adaptive

// residualContext is what the residuals of a row so far tell about the next one. Magnitudes are
// log2 in Q10 of Q6.
type residualContext struct {
	near int32 // magnitude of the previous residual in the field, or 0
	run  int32 // running mean of how much residuals exceeded their expected magnitude
}

// Limits of the contexts.
const (
	maxExcess  = 3 << 10 // of one residual in run
	maxContext = 4 << 10 // of near and offset
)

// observe adds a residual's magnitude, of which expected was the expectation.
func (s *residualContext) observe(magnitude, expected int32) {
	s.near = magnitude
	s.run += (max(-maxExcess, min(maxExcess, magnitude-expected)) - s.run) >> 2
}

// inputs returns the terms that adjust an expected magnitude: the previous residual of the field,
// the residuals of the row, and the predicted offset from the reference, off.
func (s *residualContext) inputs(expected int32, off int64) (near, run, offset int32) {
	if s.near != 0 {
		near = max(-maxContext, min(maxContext, s.near-expected))
	}
	offset = max(-maxContext, min(maxContext, log2(max(off, -off)<<6+19)-expected))
	return near, s.run, offset
}

// contextWeights are the weights of the terms, Q12.
type contextWeights struct{ near, run, offset int16 }

// Limits of a context weight.
const (
	minContextWeight = -1 << 12
	maxContextWeight = 2 << 12
)

// adjust returns the expected magnitude in view of the contexts.
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
