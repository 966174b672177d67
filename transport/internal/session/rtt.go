package session

import "time"

// rtt is the round trip time, smoothed as RFC 6298 smooths it.
type rtt struct {
	smoothed, last time.Duration
	samples        uint64
}

// sample takes one measurement.
func (r *rtt) sample(d time.Duration) {
	r.last = d
	if r.samples == 0 {
		r.smoothed = d
	} else {
		r.smoothed += (d - r.smoothed) / 8
	}
	r.samples++
}
