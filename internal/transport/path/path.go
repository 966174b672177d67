// Package path estimates the path between the two ends of a session from what this end sent and
// what the peer answered. It has no clock and no network: the time, since any start, is an
// argument.
package path

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"time"
)

const (
	// Interval is the minimum time between two asks that measure the round-trip time. The echo of
	// an ask sent earlier measures nothing.
	Interval = 900 * time.Millisecond // heartbeats are a second apart, and timers imprecise
	// MaxAge is the maximum age of an ask whose echo measures the round-trip time.
	MaxAge = 5 * time.Second

	maxAsks    = uint(MaxAge/Interval) + 1 // outstanding, so that none is replaced before MaxAge
	recent     = 9                         // measurements that RTT takes into account
	minPeriod  = 10 * time.Second          // the minimum is kept by periods of this length
	minPeriods = 4                         // the current one included, so the minimum covers 30 to 40 s
)

// Estimator estimates the round-trip time from asks: random numbers that this end sends and that
// the peer echoes. A peer cannot know the number of an ask that it has not received, each ask
// counts once, and the time of an ask is remembered here. So a peer can delay its echoes, but it
// cannot make a round trip shorter than by the hold time that the caller believes, nor add
// measurements. The zero value is ready for use. Not safe for concurrent use.
type Estimator struct {
	asks   [maxAsks]ask // a ring of the last ones that measure
	asked  uint         // the number of them
	random [4]byte

	echoed   bool
	echoedAt time.Duration // when the last echo that measured arrived
	last     time.Duration
	samples  uint64
	recent   [recent]time.Duration // a ring
	rtt      time.Duration
	lowest   [minPeriods]time.Duration // of the current period, then of earlier ones; 0: none
	periodAt time.Duration             // when the current period began
}

type ask struct {
	number uint32 // 0: answered
	sent   time.Duration
}

// Ask returns the number of an ask that is sent at now, which is not 0. It measures the round-trip
// time if the last one that does was sent Interval ago or earlier. random must not fail.
func (e *Estimator) Ask(now time.Duration, random io.Reader) uint32 {
	if _, err := io.ReadFull(random, e.random[:]); err != nil {
		panic("path: the random source failed: " + err.Error())
	}
	number := cmp.Or(binary.LittleEndian.Uint32(e.random[:]), 1)
	if e.asked == 0 || now-e.asks[(e.asked-1)%maxAsks].sent >= Interval {
		e.asks[e.asked%maxAsks] = ask{number, now}
		e.asked++
	}
	return number
}

// Echoed measures the round-trip time if number is that of an outstanding ask of the last MaxAge,
// which the peer has held for a time not longer than its age, and reports whether that is so.
func (e *Estimator) Echoed(now time.Duration, number uint32, hold time.Duration) bool {
	for i := range e.asks {
		a := &e.asks[i]
		if number == 0 || a.number != number {
			continue
		}
		a.number = 0
		age := now - a.sent
		if hold < 0 || hold > age || age > MaxAge {
			return false
		}
		return e.measuredBy(now, a.sent, age-hold)
	}
	return false
}

// measuredBy adds the measurement of an ask and reports whether it counts. If one end stalled, the
// asks that were under way are all answered late, at the same time: together they are one
// measurement, the lowest.
func (e *Estimator) measuredBy(now, sent, rtt time.Duration) bool {
	if e.echoed && sent < e.echoedAt && now-e.echoedAt < Interval/2 {
		if rtt >= e.last {
			return false
		}
		e.samples--
	}
	e.echoed, e.echoedAt = true, now
	e.Measured(now, rtt)
	return true
}

// Measured adds a measurement of the round-trip time, such as that of a handshake.
func (e *Estimator) Measured(now time.Duration, rtt time.Duration) {
	e.last = rtt
	e.recent[e.samples%recent] = rtt
	e.samples++
	var sorted [recent]time.Duration
	n := copy(sorted[:min(e.samples, recent)], e.recent[:])
	slices.Sort(sorted[:n])
	middle := sorted[n/3 : n-n/3]
	e.rtt = 0
	for _, d := range middle {
		e.rtt += d
	}
	e.rtt /= time.Duration(len(middle))

	if e.samples == 1 {
		e.periodAt = now
	}
	for i := 0; i < minPeriods && now-e.periodAt >= minPeriod; i++ {
		copy(e.lowest[1:], e.lowest[:])
		e.lowest[0] = 0
		e.periodAt += minPeriod
	}
	if now-e.periodAt >= minPeriod {
		e.periodAt = now
	}
	e.lowest[0] = lower(e.lowest[0], max(rtt, 1))
}

// RTT returns the mean of the middle third of the last 9 measurements: three of them that are too
// long or too short do not move it. It is 0 before the first measurement.
func (e *Estimator) RTT() time.Duration { return e.rtt }

// MinRTT returns the lowest measurement of the 30 to 40 s before the last one, 0 before the first.
func (e *Estimator) MinRTT() (d time.Duration) {
	for _, p := range e.lowest {
		d = lower(d, p)
	}
	return d
}

// Last returns the last measurement and the number of measurements.
func (e *Estimator) Last() (rtt time.Duration, samples uint64) { return e.last, e.samples }

// lower returns the lower of two durations, where 0 means none.
func lower(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
