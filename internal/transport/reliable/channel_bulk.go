package reliable

import (
	"time"
)

// The bulk channel yields to other traffic. Its rate is limited. When the round-trip time rises, it
// reduces the number of its segments in flight, so that its queue on the path delays other traffic
// by no more than about targetDelay (the rule of LEDBAT, RFC 6817). Packet loss does not reduce it,
// because on many players' paths loss is no sign of congestion.
const (
	targetDelay = 20 // ms
	firstWindow = 8  // segments in flight
	minWindow   = 2
	growSamples = 8  // minimum number of measurements before the window grows
	slowSamples = 16 // minimum number before it shrinks; with fewer, jitter would look like a queue
	// baseTime is the time after which a round-trip time no longer counts for the path's minimum.
	baseTime = 2 * time.Minute
	// burstTime is the time for which unused budget accumulates. It is at least twice a listener's
	// tick.
	burstTime = 25 * time.Millisecond
)

// bulk is the state of a paced channel.
type bulk struct {
	rate   float64             // bytes per second
	source func([]byte) []byte // see [Channel.SetBulk]
	buf    []byte

	budget float64 // bytes that may be sent now; negative if the last segment exceeded the budget
	at     time.Duration

	window  float64  // maximum number of segments in flight
	found   bool     // the window has reached the path's capacity once; it grows slowly from then on
	base    [2]int32 // minimum round-trip time in the current and in the previous half of baseTime, in ms
	baseAt  time.Duration
	round   time.Duration // start of the current round trip
	lowest  int32         // minimum round-trip time in this round, in ms; 0: none was measured
	samples int           // number of measurements in this round
}

// SetBulk makes the channel a paced one with a rate limit in bytes per second. While it has room,
// it sends the messages that source appends to its argument; without a message, source returns the
// argument. A message with its size prefix must fit into a segment. [Channel.Wake] makes the
// channel call source again.
func (c *Channel) SetBulk(rate float64, source func([]byte) []byte) {
	c.bulk = &bulk{rate: rate, source: source, window: firstWindow}
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
	rate := b.rate
	if c.rtt > 0 { // send the window over one round trip, at 1.25 times the rate
		rate = min(rate, 1250*b.window*float64(c.cfg.MTU+c.cfg.Overhead)/float64(c.rtt))
	}
	b.budget = min(b.budget+(c.now-b.at).Seconds()*rate, burstTime.Seconds()*rate)
	b.at = c.now
	for c.segments() < int(b.window) {
		if b.budget <= 0 {
			return true
		}
		b.buf = b.source(b.buf[:0])
		if len(b.buf) == 0 {
			return false
		}
		c.push(b.buf)
		b.charge(len(b.buf) + sizeOf(len(b.buf)) + SegmentSize + int(c.cfg.Overhead))
	}
	return false
}

func (b *bulk) charge(n int) {
	if b != nil {
		b.budget -= float64(n)
	}
}

// measure processes a round-trip time in ms. At most once per round trip, it adapts the window to
// the lowest round-trip time in the round. Higher ones include the wait of acknowledgments for a
// flush, which is no queue.
func (b *bulk) measure(now time.Duration, rtt int32) {
	rtt = max(rtt, 1)
	if now-b.baseAt > baseTime/2 {
		b.base[1], b.base[0], b.baseAt = b.base[0], 0, now
	}
	b.base[0] = lower(b.base[0], rtt)
	b.lowest = lower(b.lowest, rtt)
	if b.samples++; b.samples < growSamples || now-b.round < time.Duration(b.lowest)*time.Millisecond {
		return
	}
	queued := b.lowest - lower(b.base[0], b.base[1])
	off := max(1-float64(queued)/targetDelay, -1)
	if off < 0 && b.samples < slowSamples {
		return
	}
	b.round, b.lowest, b.samples = now, 0, 0
	b.found = b.found || off < 0
	switch {
	case off < 0:
		b.window = max(b.window*(1+off/2), minWindow)
	case b.found:
		b.window = min(b.window+off*max(b.window/16, 1), window)
	default:
		b.window = min(b.window*(1+off/4), window)
	}
}

// lower returns the lower of two round-trip times. 0 means none.
func lower(a, b int32) int32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
