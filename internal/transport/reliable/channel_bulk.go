package reliable

import (
	"math"
	"time"
)

const (
	// minFlight is the number of segments that may be in flight on any path.
	minFlight = 2
	// burstTime is the time for which unused budget accumulates. It is at least twice a listener's
	// tick.
	burstTime = 25 * time.Millisecond
	// segmentTime is the time that a path needs for a segment, if it is not longer than MTU. On a
	// slow path a longer segment would delay other traffic.
	segmentTime = 8 * time.Millisecond
	minSegment  = 256 // minimum size of a segment's data that the path's rate can require, in bytes
)

// bulk is the state of a paced channel. It sends what its path has room for after all other
// traffic, at most its rate.
type bulk struct {
	rate   float64                  // bytes per second
	source func([]byte, int) []byte // see [Channel.SetBulk]
	buf    []byte

	budget float64 // bytes that may be sent now; negative if the last segment exceeded the budget
	at     time.Duration
}

// SetBulk makes the channel a paced one with a rate limit in bytes per second. While it has room,
// it sends the messages that source appends to its first argument; without a message, source
// returns that argument. A message should have at most as many bytes of data as the second argument
// says. With its size prefix it must fit into a segment. [Channel.Wake] makes the channel call
// source again.
func (c *Channel) SetBulk(rate float64, source func([]byte, int) []byte) {
	c.bulk = &bulk{rate: rate, source: source}
}

// Wake sends messages of the source now, as far as limits permit.
func (c *Channel) Wake(now time.Time) {
	c.begin(now)
	c.flush(now)
}

// pull queues the messages of the source that may be sent now. more reports that the source may
// have further messages that only the rate limit holds back.
func (c *Channel) pull() (more bool) {
	b := c.bulk
	if b == nil {
		return false
	}
	b.budget = min(b.budget+(c.now-b.at).Seconds()*b.rate, burstTime.Seconds()*b.rate)
	b.at = c.now
	room, flight, rate := math.Inf(1), math.Inf(1), math.Inf(1)
	if c.cfg.Room != nil {
		room, flight, rate = c.cfg.Room(c.start.Add(c.now))
	}
	size := int(min(max(rate*segmentTime.Seconds(), minSegment), float64(c.maxData())))
	segments := int(min(max(flight/float64(size+SegmentSize+int(c.cfg.Overhead)), minFlight), window))
	for c.segments() < segments {
		if b.budget <= 0 || room <= 0 {
			return true
		}
		b.buf = b.source(b.buf[:0], size)
		if len(b.buf) == 0 {
			return false
		}
		c.push(b.buf)
		n := len(b.buf) + sizeOf(len(b.buf)) + SegmentSize + int(c.cfg.Overhead)
		room -= float64(n)
		b.charge(n)
	}
	return false
}

func (b *bulk) charge(n int) {
	if b != nil {
		b.budget -= float64(n)
	}
}
