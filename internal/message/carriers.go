package message

import (
	"sync/atomic"
	"time"
)

// sameTick is the maximum time between messages that count as sent in the same tick.
const sameTick = 2 * time.Millisecond

// Carriers predicts when the next message that can carry acks is sent. The zero value expects none.
// Only Interval is safe for concurrent use.
type Carriers struct {
	last  time.Time
	every atomic.Int64
}

// Left records that a message with room for acks is sent now. Intervals longer than most count as
// most.
func (c *Carriers) Left(now time.Time, most time.Duration) {
	gap := now.Sub(c.last)
	switch {
	case c.last.IsZero():
	case gap <= sameTick:
		return
	default: // the longest recent interval, as messages may leave at irregular times
		every := c.Interval()
		c.every.Store(int64(min(max(gap, every-every/8), most)))
	}
	c.last = now
}

// Interval returns the time between messages, or 0 if none is expected.
func (c *Carriers) Interval() time.Duration { return time.Duration(c.every.Load()) }

// Until returns until when acks can wait for a message: two intervals after the last one. It
// reports false if no message is expected.
func (c *Carriers) Until(now time.Time) (until time.Time, ok bool) {
	until = c.last.Add(2 * c.Interval())
	if !now.Before(until) {
		c.every.Store(0)
	}
	return until, c.Interval() != 0
}
