package adaptive

// surprise is what the residuals of a frame so far say about the next one.
// Magnitudes are log2 in Q10 of steps in Q6.
type residualContext struct {
	near int32 // magnitude of the residual before in the field, or 0
	run  int32 // mean of how much greater than expected they were
}

// Bounds of what surprises.
const (
	maxExcess  = 3 << 10
	maxContext = 4 << 10
)

// note takes the magnitude of a residual that was expected to be at.
func (s *residualContext) observe(magnitude, at int32) {
	s.near = magnitude
	s.run += (max(-maxExcess, min(maxExcess, magnitude-at)) - s.run) >> 2
}

// contexts are what leans on an expected magnitude, where the prediction leads off
// from the reference: the residual before, those before, and the way.
func (s *residualContext) inputs(at int32, off int64) (near, run, way int32) {
	if s.near != 0 {
		near = max(-maxContext, min(maxContext, s.near-at))
	}
	way = max(-maxContext, min(maxContext, log2(max(off, -off)<<6+19)-at))
	return near, s.run, way
}

// leaning is how much each of them leans, Q12.
type contextWeights struct{ near, run, offset int16 }

// Bounds of a weight of a leaning.
const (
	minContextWeight = -1 << 12
	maxContextWeight = 2 << 12
)

// lean is the magnitude that is expected in view of the contexts.
func (w *contextWeights) adjust(at, near, run, way int32) int32 {
	return max(minExpected, at+(near*int32(w.near)+run*int32(w.run)+way*int32(w.offset))>>12)
}

// learn moves the weights; gain is what a greater magnitude would have saved, in
// bits of Q10.
func (w *contextWeights) learn(gain, near, run, way int32) {
	w.near = movedWeight(w.near, gain*near)
	w.run = movedWeight(w.run, gain*run)
	w.offset = movedWeight(w.offset, gain*way)
}

func movedWeight(w int16, d int32) int16 {
	return int16(max(minContextWeight, min(maxContextWeight, int32(w)+(d*contextRate+1<<15)>>16)))
}
