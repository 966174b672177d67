package simnet

import "time"

// clock is virtual time for packet connections: the process's own, or under testing/synctest the
// bubble's. Nothing else in this package reads a clock.
type clock struct{ start time.Time }

func newClock() clock {
	return clock{time.Now()} //nolint:forbidigo // packet connections work in the time of their callers
}

// now returns the time since the clock's start.
func (c clock) now() time.Duration {
	return time.Since(c.start) //nolint:forbidigo // see newClock
}

// at converts a time of day.
func (c clock) at(t time.Time) time.Duration { return t.Sub(c.start) }

// newTimer returns a stopped timer.
func newTimer() *time.Timer {
	t := time.NewTimer(forever) //nolint:forbidigo // see newClock
	t.Stop()
	return t
}

// forever is longer than anything here takes.
const forever time.Duration = 1 << 62
