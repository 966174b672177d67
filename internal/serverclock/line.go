package serverclock

import (
	"slices"
	"time"
)

const (
	// one is the rate of a clock that runs as fast as the own one. Rates are in millionths, as
	// integers: both ends of a session file, and all platforms, compute the same.
	one = 1_000_000
	// minRate and maxRate bound the rate of a [Line], whatever the packets show.
	minRate, maxRate = one / 4, 2 * one
	// exact is the difference from one up to which a rate counts as one: the anchors suffice to
	// follow clock drift, and servers that keep their rate.
	exact = one / 100

	// A packet counts for the line during one to two periods of this number of bins.
	periodBins = 5
	// The rate is the median of the slopes between bins that are so far apart, for the newest
	// pairs: the quick one follows changes within about eight bins, the precise one needs 25. The
	// precise one counts unless the quick one differs by more than changed. A step of the server's
	// time is in as many slopes as the bins are apart, and so in less than half of them.
	quickLag, quickPairs     = 4, 9
	preciseLag, precisePairs = 8, 17
	bins                     = preciseLag + precisePairs
	changed                  = one / 25
	// A slope across a silence that is this number of times as long as the shortest span does not
	// count.
	silence = 3

	// remoteBin and localBin are the shortest bins of packets that came over a network, and of own
	// ticks.
	remoteBin = 100 * time.Millisecond
	localBin  = 60 * time.Millisecond
	// maxInterval bounds the interval of packets.
	maxInterval = 10 * time.Second
)

// point is a packet of a server time, which arrived at a time of the own clock.
type point struct{ at, server time.Duration }

// Line is the server's time as a function of the own time: it has the rate of the server's clock,
// and goes through the packet with the shortest delay of the last one to two periods. So it is late
// by the shortest delay of the path. It follows clock drift and servers that run slower or faster
// than they should. A slower path is recognized after two periods at most. The zero Line is not
// valid: see [Remote] and [Local].
type Line struct {
	bin          time.Duration
	rate         int64
	best, before point         // packets with the shortest delay of this period and of the previous one
	since        time.Duration // start of this period
	ring         [bins]point   // the packets of complete bins with the shortest delay
	complete     int           // number of bins since the start
	current      point         // packet with the shortest delay of the current bin
	begun        time.Duration // start of the current bin
}

// Remote returns a Line of packets of another program, which sends them at that interval.
func Remote(interval time.Duration) Line { return newLine(remoteBin, interval) }

// Local returns a Line of ticks of this program.
func Local(interval time.Duration) Line { return newLine(localBin, interval) }

func newLine(shortest, interval time.Duration) Line {
	return Line{bin: max(shortest, min(interval, maxInterval)*5/4), rate: one}
}

// Restart begins with a packet. The rate stays.
func (l *Line) Restart(now, server time.Duration) {
	p := point{now, server}
	l.best, l.before, l.since = p, p, now
	l.complete, l.current, l.begun = 0, p, now
}

// Follow adds a packet that is newer than all before.
func (l *Line) Follow(now, server time.Duration) {
	if now-l.since > periodBins*l.bin {
		l.before, l.best, l.since = l.best, point{now, server}, now
	}
	l.Raise(now, server)
	l.put(point{now, server})
}

// Raise adds a packet that shows only how short the delay can be.
func (l *Line) Raise(now, server time.Duration) {
	if p := (point{now, server}); l.through(p, l.best.at) > l.best.server {
		l.best = p
	}
}

// put adds a packet to its bin. A bin ends with the first packet after its time.
func (l *Line) put(p point) {
	switch {
	case p.at-l.begun >= l.bin:
		l.ring[l.complete%bins] = l.current
		l.complete++
		l.current, l.begun = p, p.at
		l.measure()
	case l.through(p, l.current.at) > l.current.server:
		l.current = p
	}
}

// measure measures the rate by the complete bins.
func (l *Line) measure() {
	quick, ok := l.slope(quickLag, quickPairs)
	if !ok {
		return
	}
	rate := quick
	if precise, ok := l.slope(preciseLag, precisePairs); ok && max(quick-precise, precise-quick) <= changed {
		rate = precise
	}
	if max(rate-one, one-rate) <= exact {
		rate = one
	}
	l.rate = min(max(rate, minRate), maxRate)
}

// slope returns the median slope between the newest bins and those that are lag older, if there are
// more than half of the pairs.
func (l *Line) slope(lag, pairs int) (rate int64, ok bool) {
	var all [precisePairs]int64
	slopes := all[:0]
	for n := l.complete - 1; n >= max(lag, l.complete-pairs); n-- {
		to, from := &l.ring[n%bins], &l.ring[(n-lag)%bins]
		if span := to.at - from.at; span > 0 && span <= silence*time.Duration(lag)*l.bin {
			rise := min(to.server-from.server, 2*maxRate/one*span) // more would overflow
			slopes = append(slopes, int64(rise)*one/int64(span))
		}
	}
	if len(slopes) <= pairs/2 {
		return 0, false
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], true
}

// through returns the server's time at now on a line through p.
func (l *Line) through(p point, now time.Duration) time.Duration {
	return p.server + scale(now-p.at, l.rate)
}

// At returns the server's time at now.
func (l *Line) At(now time.Duration) time.Duration {
	return max(l.through(l.best, now), l.through(l.before, now))
}

// When returns the own time at which the line reaches a server time.
func (l *Line) When(server time.Duration) time.Duration {
	d := server - l.At(l.best.at)
	return l.best.at + d/time.Duration(l.rate)*one + d%time.Duration(l.rate)*one/time.Duration(l.rate)
}

// Scale returns the time of the server in a duration of the own clock.
func (l *Line) Scale(d time.Duration) time.Duration { return scale(d, l.rate) }

// Rate returns the rate of the server's clock: the time that passes there in a second.
func (l *Line) Rate() float64 { return float64(l.rate) / one }

// scale multiplies a duration by a rate. No result exceeds the limit of times.
func scale(d time.Duration, rate int64) time.Duration {
	d = max(-limit/2, min(d, limit/2))
	return d/one*time.Duration(rate) + d%one*time.Duration(rate)/one
}
