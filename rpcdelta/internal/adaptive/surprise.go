package adaptive

// surprise is what the residuals of a frame so far say about the next one.
// Magnitudes are log2 in Q10 of steps in Q6.
type surprise struct {
	near int32 // magnitude of the residual before in the field, or 0
	run  int32 // mean of how much greater than expected they were
}

// Bounds of what surprises.
const (
	maxSurprise = 3 << 10
	maxContext  = 4 << 10
)

// note takes the magnitude of a residual that was expected to be at.
func (s *surprise) note(magnitude, at int32) {
	s.near = magnitude
	s.run += (max(-maxSurprise, min(maxSurprise, magnitude-at)) - s.run) >> 2
}

// contexts are what leans on an expected magnitude, where the prediction leads off
// from the reference: the residual before, those before, and the way.
func (s *surprise) contexts(at int32, off int64) (near, run, way int32) {
	if s.near != 0 {
		near = max(-maxContext, min(maxContext, s.near-at))
	}
	way = max(-maxContext, min(maxContext, log2(max(off, -off)<<6+19)-at))
	return near, s.run, way
}

// leaning is how much each of them leans, Q12.
type leaning struct{ near, run, way int16 }

// Bounds of a weight of a leaning.
const (
	leastLean = -1 << 12
	mostLean  = 2 << 12
)

// lean is the magnitude that is expected in view of the contexts.
func (w *leaning) lean(at, near, run, way int32) int32 {
	return max(least, at+(near*int32(w.near)+run*int32(w.run)+way*int32(w.way))>>12)
}

// learn moves the weights; gain is what a greater magnitude would have saved, in
// bits of Q10.
func (w *leaning) learn(gain, near, run, way int32) {
	w.near = leaned(w.near, gain*near)
	w.run = leaned(w.run, gain*run)
	w.way = leaned(w.way, gain*way)
}

func leaned(w int16, d int32) int16 {
	return int16(max(leastLean, min(mostLean, int32(w)+(d*leanRate+1<<15)>>16)))
}
