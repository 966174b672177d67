// Package path measures the path between the two ends of a session: the round-trip time by asks and
// echoes, and the queue and the rate of each direction by reports on datagrams that arrived. It has
// no clock and no network: the time, since any start, is an argument.
package path

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"time"
)

const (
	// Interval is the minimum time between two asks that measure the round-trip time. Echoes of
	// asks in between measure nothing.
	Interval = 900 * time.Millisecond // heartbeats are a second apart, and timers imprecise
	// MaxAge is the maximum age of an ask whose echo measures the round-trip time.
	MaxAge = 5 * time.Second

	maxAsks    = uint(MaxAge/Interval) + 1 // outstanding asks, enough that none is replaced before MaxAge
	recent     = 9                         // number of measurements that RTT considers
	minPeriod  = 10 * time.Second          // the minimum RTT is stored per period of this length
	minPeriods = 4                         // number of periods, including the current one; the minimum covers 30 to 40 s
)

// Path is what an end of a session knows of its path. The zero value is ready for use. Not safe for
// concurrent use.
type Path struct {
	Estimator
	Arrivals   // of the peer's datagrams
	Controller // of the datagrams to the peer
}

// A peer can report datagrams that it did not receive, and hide their delay, but it cannot echo an
// ask that did not arrive. So the rate grows to at most maxUnproven times the rate at the last echo
// with a round trip of at most maxExcess above the minimum, or times the first rate, and not at all
// without such an echo for maxSilence.
const (
	maxUnproven = 6
	maxExcess   = 150 * time.Millisecond
	maxSilence  = 5 * time.Second
)

// Echoed is [Estimator.Echoed]. The round trip may permit a higher rate.
func (p *Path) Echoed(now time.Duration, number uint32, hold time.Duration) bool {
	ok := p.Estimator.Echoed(now, number, hold)
	if ok && p.Estimator.last-p.MinRTT() <= maxExcess {
		p.proven, p.provenAt = p.Rate(), now
	}
	return ok
}

// Estimator estimates the round-trip time from asks: random numbers that this end sends and that
// the peer echoes. A peer cannot know the number of an ask that it has not received, each ask
// counts once, and the Estimator stores the time of each ask. So a peer can delay its echoes, but
// it cannot add measurements, and it can shorten a round trip only by the hold time that the caller
// accepts. The zero value is ready for use. Not safe for concurrent use.
type Estimator struct {
	asks   [maxAsks]ask // ring buffer of the last measuring asks
	asked  uint         // number of measuring asks so far
	random [4]byte

	echoed   bool
	echoedAt time.Duration // arrival of the last echo that measured
	last     time.Duration
	samples  uint64
	recent   [recent]micros // ring buffer of measurements
	rtt      time.Duration
	lowest   [minPeriods]micros // minimum of the current period, then of earlier periods; 0: none
	periodAt time.Duration      // start of the current period
}

type ask struct {
	number uint32 // number of the ask; 0: answered
	sent   micros // modulo 2^32
}

// micros is a time in microseconds.
type micros uint32

// maxMeasured is the maximum round-trip time that counts: longer ones count as this one.
const maxMeasured = time.Minute

func microsOf(d time.Duration) micros { return micros(d / time.Microsecond) }

func (m micros) duration() time.Duration { return time.Duration(m) * time.Microsecond }

// Ask returns the number of an ask that is sent at now; it is not 0. The ask measures the
// round-trip time if the last measuring ask was sent at least Interval ago. random must not fail.
func (e *Estimator) Ask(now time.Duration, random io.Reader) uint32 {
	if _, err := io.ReadFull(random, e.random[:]); err != nil {
		panic("path: the random source failed: " + err.Error())
	}
	number := cmp.Or(binary.LittleEndian.Uint32(e.random[:]), 1)
	if e.asked == 0 || (microsOf(now)-e.asks[(e.asked-1)%maxAsks].sent).duration() >= Interval {
		e.asks[e.asked%maxAsks] = ask{number, microsOf(now)}
		e.asked++
	}
	return number
}

// Echoed measures the round-trip time. It reports whether number belongs to an outstanding
// measuring ask that is at most MaxAge old. hold is the time for which the peer held the ask; it
// must not exceed the age of the ask.
func (e *Estimator) Echoed(now time.Duration, number uint32, hold time.Duration) bool {
	for i := range e.asks {
		a := &e.asks[i]
		if number == 0 || a.number != number {
			continue
		}
		a.number = 0
		age := (microsOf(now) - a.sent).duration()
		if hold < 0 || hold > age || age > MaxAge {
			return false
		}
		return e.measuredBy(now, now-age, age-hold)
	}
	return false
}

// measuredBy adds the measurement of an ask and reports whether it counts. If one end stalled, all
// asks in flight are answered late and at the same time. Together they count as one measurement,
// the lowest.
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
	rtt = min(rtt, maxMeasured)
	e.last = rtt
	e.recent[e.samples%recent] = microsOf(rtt)
	e.samples++
	var sorted [recent]micros
	n := copy(sorted[:min(e.samples, recent)], e.recent[:])
	slices.Sort(sorted[:n])
	middle := sorted[n/3 : n-n/3]
	e.rtt = 0
	for _, m := range middle {
		e.rtt += m.duration()
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
	e.lowest[0] = lower(e.lowest[0], max(microsOf(rtt), 1))
}

// RTT returns the mean of the middle third of the last 9 measurements, so that three outliers in
// each direction have no effect. It is 0 before the first measurement.
func (e *Estimator) RTT() time.Duration { return e.rtt }

// MinRTT returns the lowest measurement of the last 30 to 40 s before the last measurement, 0
// before the first.
func (e *Estimator) MinRTT() time.Duration {
	var lowest micros
	for _, p := range e.lowest {
		lowest = lower(lowest, p)
	}
	return lowest.duration()
}

// Last returns the last measurement and the number of measurements.
func (e *Estimator) Last() (rtt time.Duration, samples uint64) { return e.last, e.samples }

// lower returns the lower of two durations. 0 means no duration.
func lower(a, b micros) micros {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
