package rpcdelta

import "math"

// schedule decides when held frames are sent. Time is counted in frames: a payload is sent in the
// tick of its newest frame. Not safe for concurrent use.
type schedule struct {
	sent     [scheduleSpan]uint64 // sequences of the newest frames of the last payloads, a ring
	payloads uint64               // number of payloads sent
	urgent   uint64               // sequence of the last urgent frame
	copies   int                  // payloads that must still contain it, each in the next tick
}

// scheduleSpan is the number of payloads over which an interval with a fraction is kept.
const scheduleSpan = 8

// hurry requests that frame seq leaves at once, and so do the next payloads until copies contain
// it.
func (s *schedule) hurry(seq uint64, copies int) { s.urgent, s.copies = seq, copies }

// record records that the payload of frame seq is sent.
func (s *schedule) record(seq uint64) {
	s.sent[s.payloads%scheduleSpan] = seq
	s.payloads++
	s.copies = max(0, s.copies-1)
}

// hurries reports whether copies of an urgent frame newer than known have to leave in this tick.
func (s *schedule) hurries(known uint64, anyKnown bool) bool {
	return s.copies > 0 && (!anyKnown || known < s.urgent)
}

// latest returns the latest tick of the next payload at a mean interval of payloads in frames.
func (s *schedule) latest(interval float64) uint64 {
	latest := uint64(math.MaxUint64)
	for j := uint64(1); j <= min(scheduleSpan, s.payloads); j++ {
		latest = min(latest, s.sent[(s.payloads-j)%scheduleSpan]+uint64(math.Ceil(float64(j)*interval)))
	}
	return latest
}
