// Package queuedelay detects queues on a path from round-trip times.
package queuedelay

import "time"

const (
	// Threshold is the result of [Meter.End] that indicates a queue.
	Threshold = 20 * time.Millisecond
	// minSpan is the period of one minimum of the round-trip time. The minimum of two periods
	// counts, since paths change.
	minSpan = 10 * time.Second
)

// Meter compares the shortest round trip of an interval with the shortest of the last 10 to 20 s:
// a queue that lasts delays every datagram, and jitter only some of them. The zero value is ready.
// Times ascend. Not safe for concurrent use.
type Meter struct {
	samples  int           // number of samples in the interval
	shortest time.Duration // shortest sample in the interval

	min, lastMin    time.Duration // minima of this span and of the previous one; 0: none
	spanStart       time.Time
	mean, variation time.Duration // smoothed
}

// Add adds a measured round-trip time to the interval.
func (m *Meter) Add(rtt time.Duration) {
	rtt = max(rtt, 1)
	if m.samples++; m.samples == 1 || rtt < m.shortest {
		m.shortest = rtt
	}
	if m.mean == 0 {
		m.mean = rtt
	}
	m.variation += ((rtt - m.mean).Abs() - m.variation) / 8
	m.mean += (rtt - m.mean) / 8
}

// Samples returns the number of round-trip times in the interval.
func (m *Meter) Samples() int { return m.samples }

// Mean returns the smoothed round-trip time; 0 before the first.
func (m *Meter) Mean() time.Duration { return m.mean }

// End ends the interval. It returns the delay of every datagram of the interval in queues, less
// half of the mean deviation of the round-trip time, which may have another cause. It may be
// negative. Without round-trip times it returns 0.
func (m *Meter) End(now time.Time) time.Duration {
	if m.samples == 0 {
		return 0
	}
	if m.min == 0 || now.Sub(m.spanStart) > minSpan {
		m.lastMin, m.min, m.spanStart = m.min, m.shortest, now
	}
	m.min = min(m.min, m.shortest)
	usual := m.min
	if m.lastMin != 0 {
		usual = min(usual, m.lastMin)
	}
	m.samples = 0
	return m.shortest - usual - m.variation/2
}
