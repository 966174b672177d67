// Package serverclock estimates a server's time from the arrival of its packets, or from its own
// ticks. Times are durations since any start: of the own clock, and of the server's.
package serverclock

import "time"

const (
	// MaxSlew is the difference from which on a Playback jumps ahead.
	MaxSlew = 250 * time.Millisecond
	// slewShare is the relative change of the rate of a [Playback] by which it corrects small
	// differences, as a divisor: 5 %. settle is the time constant of larger ones, up to half of the
	// rate.
	slewShare = 20
	settle    = MaxSlew

	// maxJump is the step of the clocks or of the path after which a Clock starts again.
	maxJump = time.Second
	// limit bounds times: no difference overflows below it.
	limit = time.Duration(1) << 61
)

// Playback is a clock that follows a target smoothly and never backward: it runs up to 5 % faster
// or slower, and if it is more than 12.5 ms off, up to half faster or slower. If it is more than
// MaxSlew behind, it jumps.
type Playback struct {
	At      time.Duration // time that the clock showed at the last step
	Now     time.Duration // time of the last step
	Playing bool          // there was a step
}

// Step returns the time that the clock shows at now. Its target is want, which runs as l does.
func (p *Playback) Step(now, want time.Duration, l *Line) time.Duration {
	if !p.Playing {
		p.Playing, p.Now, p.At = true, now, want
		return want
	}
	step := max(0, now-p.Now)
	advance := l.Scale(step)
	p.Now += step
	p.At += advance
	behind := want - p.At
	off := max(behind, -behind)
	most := max(step/slewShare, min(min(off, time.Second)*min(step, time.Second)/settle, step/2))
	if behind < 0 {
		most = min(most, advance/2)
	}
	switch {
	case behind > MaxSlew:
		p.At = want
	default:
		p.At += max(-most, min(behind, most))
	}
	return p.At
}

// Clock is an estimate of a server's time. After a silence it keeps its line until the packets of a
// bin show a later one: those that arrive first may have waited for this program. Not safe for
// concurrent use.
type Clock struct {
	Line
	play            Playback
	newest, arrived time.Duration
	started         bool

	probing bool          // after a silence
	probe   point         // packet with the shortest delay since the silence
	since   time.Duration // start of the probe
	lag     time.Duration // time by which the probe was behind the line at its start
}

// New returns a clock with a [Remote] or [Local] line.
func New(l Line) Clock { return Clock{Line: l} }

// Started reports whether there was a packet.
func (c *Clock) Started() bool { return c.started }

// Observe adds a packet of a server time, which arrived at now. It reports whether the clock
// started again: after a step of the clocks, or a silence in which the server stood still.
func (c *Clock) Observe(now, server time.Duration) (restarted bool) {
	if server < 0 || server > limit || now > limit {
		return false
	}
	switch jump := (now - server) - (c.arrived - c.newest); {
	case !c.started || server > c.newest && jump < -maxJump:
		c.restart(now, server)
		restarted = true
	case server <= c.newest:
		c.Raise(now, server)
		return false
	case !c.probing && now-c.arrived > 2*c.bin:
		c.probing, c.probe, c.since, c.lag = true, point{now, server}, now, c.At(now)-server
	}
	switch p := (point{now, server}); {
	case restarted:
	case c.probing: // the line stays until the probe ends
		c.Raise(now, server)
		c.put(p)
		restarted = c.compare(p)
	default:
		c.Follow(now, server)
	}
	c.started, c.newest, c.arrived = true, server, now
	return restarted
}

func (c *Clock) restart(now, server time.Duration) {
	c.Restart(now, server)
	c.probing = false
}

// compare adds a packet to the probe and reports whether the clock starts again with it.
func (c *Clock) compare(p point) (restarted bool) {
	if c.through(p, c.probe.at) > c.probe.server {
		c.probe = p
	}
	if p.at-c.since < c.bin {
		return false
	}
	lag := c.At(p.at) - c.through(c.probe, p.at)
	if lag > c.bin/8 && lag < c.lag-c.bin/2 { // the server catches up
		c.since, c.lag = p.at, lag
		return false
	}
	c.probing = false
	if lag <= c.bin/8 {
		return false
	}
	probe := c.probe
	c.Restart(probe.at, probe.server)
	if lag > MaxSlew {
		c.play = Playback{}
	}
	return true
}

// Server returns the server's time at now, if the shortest one-way delay from the server is known.
// Over the calls it does not decrease, unless the clock starts again more than MaxSlew earlier. It
// reports false before the first packet.
func (c *Clock) Server(now, oneWay time.Duration) (time.Duration, bool) {
	if !c.started || now > limit {
		return 0, false
	}
	return c.play.Step(now, c.At(now)+c.Scale(oneWay), &c.Line), true
}
