// Package serverclock estimates a server's time from the arrival of what it sends. Times are
// durations since any start: of the client's clock, and of the server's.
package serverclock

import "time"

const (
	// slewShare is the maximum relative change of the rate of a [Playback], as a divisor: 5 %.
	slewShare = 20
	// MaxSlew is the difference from which on a Playback jumps or stops.
	MaxSlew = 250 * time.Millisecond

	// A packet counts for the base of a [Clock] during one to two periods of this length.
	period = time.Second
	// maxGap is the time without packets, or the step of the clocks or of the path, after which a
	// Clock starts again.
	maxGap = time.Second
)

// Base is the minimum difference between a packet's arrival and its server time over the last one
// to two periods: the sum of the offset between the clocks and of the shortest delay of the path.
// It follows clock drift. A slower path is recognized after that time.
type Base struct {
	base, before time.Duration // minimum of this period and the one before
	since        time.Duration // start of this period
}

// Restart begins with an offset.
func (b *Base) Restart(now, offset time.Duration) { b.base, b.before, b.since = offset, offset, now }

// Follow adds the offset of a packet, with periods of a length.
func (b *Base) Follow(now, offset, length time.Duration) {
	if now-b.since > length {
		b.before, b.base, b.since = b.base, offset, now
	}
	b.Lower(offset)
}

// Lower adds an offset that shows only how short the delay can be.
func (b *Base) Lower(offset time.Duration) { b.base = min(b.base, offset) }

// Fastest returns the minimum.
func (b *Base) Fastest() time.Duration { return min(b.base, b.before) }

// Playback is a clock that follows a target smoothly: it runs up to 5 % faster or slower, and
// never backward. If it is more than MaxSlew behind, it jumps, if so much ahead, it stops.
type Playback struct {
	At      time.Duration // at the last step
	now     time.Duration
	playing bool
}

// Step returns the time that the clock shows at now. Its target is want.
func (p *Playback) Step(now, want time.Duration) time.Duration {
	if !p.playing {
		p.playing, p.now, p.At = true, now, want
		return want
	}
	step := max(0, now-p.now)
	p.now += step
	p.At += step
	behind := want - p.At
	switch limit := step / slewShare; {
	case behind > MaxSlew:
		p.At = want
	case behind < -MaxSlew:
		p.At -= min(step, -behind)
	default:
		p.At += max(-limit, min(behind, limit))
	}
	return p.At
}

// Clock is a client's estimate of the server's time. Not safe for concurrent use.
type Clock struct {
	base            Base
	play            Playback
	newest, arrived time.Duration
	started         bool
}

// Observe adds a packet of a server time, which arrived at now.
func (c *Clock) Observe(now, server time.Duration) {
	const limit = time.Duration(1) << 61 // no difference overflows below it
	if server < 0 || server > limit {
		return
	}
	offset := now - server
	switch last := c.arrived - c.newest; {
	case !c.started || server > c.newest && (now-c.arrived > maxGap || (offset-last).Abs() > maxGap):
		c.base.Restart(now, offset)
	case server <= c.newest:
		c.base.Lower(offset)
		return
	default:
		c.base.Follow(now, offset, period)
	}
	c.started, c.newest, c.arrived = true, server, now
}

// Server returns the server's time at now, if the shortest one-way delay from the server is known.
// Over the calls it does not decrease. It reports false before the first packet.
func (c *Clock) Server(now, oneWay time.Duration) (time.Duration, bool) {
	if !c.started {
		return 0, false
	}
	return c.play.Step(now, now-c.base.Fastest()+oneWay), true
}
