package reliable

import (
	"time"
)

// The bulk channel yields to other traffic: its rate is limited, and the number of its segments in
// flight is reduced when the round-trip time rises, before a queue on the path costs others more
// than about targetDelay (the rule of LEDBAT, RFC 6817). Packet loss does not reduce it: on many
// paths of players it is no sign of congestion.
const (
	targetDelay = 20 // ms
	firstWindow = 8  // segments in flight
	minWindow   = 2
	growSamples = 8  // measurements for a larger window
	slowSamples = 16 // for a smaller one: fewer would take jitter for a queue
	// baseTime is the time after which a round-trip time counts no more as the path's minimum.
	baseTime = 2 * time.Minute
	// burstTime is the time for which a rate that was not used can be used later. A listener's
	// ticks are at most half as far apart.
	burstTime = 25 * time.Millisecond
)

// bulk is the state of a paced channel.
type bulk struct {
	rate   float64             // bytes per second
	source func([]byte) []byte // see [Channel.SetBulk]
	buf    []byte

	budget float64 // bytes that may be sent; negative after the last ones
	at     time.Duration

	window  float64  // maximum number of segments in flight
	found   bool     // the path's capacity was reached: the window grows slowly
	base    [2]int32 // minimum round-trip times in the current and the last half of baseTime, in ms
	baseAt  time.Duration
	round   time.Duration // start of the current round trip
	lowest  int32         // minimum in it, in ms; 0: none was measured
	samples int           // measurements in it
}

// SetBulk makes the channel a paced one for at most rate bytes per second. It sends the messages
// that source appends to its argument, each of which fits into a segment with its size, while the
// channel has room for them; the result is the argument if there are none at the time.
// [Channel.Wake] makes the channel ask again.
func (c *Channel) SetBulk(rate float64, source func([]byte) []byte) {
	c.bulk = &bulk{rate: rate, source: source, window: firstWindow}
}

// Wake sends messages of the source.
func (c *Channel) Wake(now time.Time) {
	c.begin(now)
	c.flush(now)
}

// pull queues messages of the source, as many as may be sent at once. It reports whether the source
// may have more, although nothing may be in flight.
func (c *Channel) pull() (more bool) {
	b := c.bulk
	if b == nil {
		return false
	}
	rate := b.rate
	if c.rtt > 0 { // a window in less than a round trip
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

// measure processes a round-trip time in ms. Once per round trip or later, it changes the window by
// the minimum of that time: acknowledgments wait for a flush, which is no queue.
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

// lower returns the lower one of two round-trip times, of which 0 is none.
func lower(a, b int32) int32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
