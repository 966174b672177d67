package replication

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/queuedelay"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
)

const (
	// controlInterval is the minimum time between two decisions. A longer round trip replaces it.
	controlInterval = 200 * time.Millisecond
	// ackTimeout is the minimum time without an ack after which the path counts as interrupted.
	// Three round trips replace it if they are longer.
	ackTimeout = 500 * time.Millisecond
	// reorderThreshold is the minimum distance from an unacked message to the newest acked one at
	// which the unacked message counts as lost.
	reorderThreshold = 8
	// minLossSample is the minimum number of messages from which a loss rate is computed.
	minLossSample = 40

	maxLoss          = 0.1  // tolerated fraction of lost messages
	backoff          = 0.85 // factor of the delivered rate when a queue builds up
	minBackoff       = 0.6  // minimum factor of the rate per decision
	startupGain      = 1.5  // factor of the rate per interval until a limit of the path is seen
	additiveIncrease = 16   // seconds of additive increase from the minimum to the maximum rate
	minUsage         = 0.7  // fraction of the rate that must be in use for an increase
)

// rateController estimates the bandwidth of a path from the acks of messages: additive increase and
// multiplicative decrease between two limits. Times are arguments and ascend.
type rateController struct {
	min, max float64 // bits per second; if min is 0, the rate is always max
	rate     float64 // bits per second

	messages *ringcache.Ring[sentMessage] // sent messages by sequence number
	next     uint16                       // sequence number after the newest message
	checked  uint16                       // first sequence number that is not counted as delivered or lost yet
	any      bool                         // a message was sent

	intervalStart time.Time
	sentBytes     int // bytes sent in the interval
	ackedBytes    int // bytes acked in the interval
	delay         queuedelay.Meter
	lost, ok      int // number of lost and delivered messages in the current loss sample

	heard     time.Time // time of the last ack, or of the first message sent after it
	limited   bool      // a limit of the path was seen
	holdUntil time.Time // no decision before it
}

type sentMessage struct {
	bytes int
	at    time.Time
	acked bool
}

func newRateController() *rateController {
	return &rateController{messages: ringcache.New[sentMessage](ackWindow)}
}

// limit sets the limits, in bits per second.
func (c *rateController) limit(lo, hi float64) {
	if c.rate == 0 {
		c.rate = lo
	}
	if lo == 0 {
		c.rate = hi
	}
	c.min, c.max = lo, hi
	c.rate = min(max(c.rate, lo), hi)
}

// sent records a message with its size on the wire, in bytes.
func (c *rateController) sent(n uint16, bytes int, now time.Time) {
	if !c.any {
		c.any, c.checked, c.intervalStart, c.heard = true, n, now, now
	}
	if c.idle() {
		c.heard = now
	}
	*c.messages.Put(uint64(n)) = sentMessage{bytes: bytes, at: now}
	c.next = n + 1
	c.sentBytes += bytes
}

// idle reports whether the newest message was acked, or none was sent.
func (c *rateController) idle() bool {
	m := c.messages.Get(uint64(c.next - 1))
	return m == nil || m.acked
}

// acked applies an ack and returns the number of messages acked for the first time.
func (c *rateController) acked(newest uint16, window uint64, now time.Time) (acked int) {
	newest = seq.Recent(newest, c.next-1)
	for n := range seq.Acked(newest, window) {
		m := c.messages.Get(uint64(n))
		if m == nil || m.acked {
			continue
		}
		m.acked, c.heard = true, now
		c.ackedBytes += m.bytes
		acked++
		if n == newest {
			c.delay.Add(now.Sub(m.at))
		}
	}
	for ; c.any && int16(newest-c.checked) >= reorderThreshold; c.checked++ {
		switch m := c.messages.Get(uint64(c.checked)); {
		case m == nil:
		case m.acked:
			c.ok++
		default:
			c.lost++
		}
	}
	return acked
}

// step changes the rate at the end of an interval, or if acks are missing.
func (c *rateController) step(now time.Time) {
	if !c.any || c.min == 0 {
		return
	}
	if !c.idle() && now.Sub(c.heard) > max(ackTimeout, 3*c.delay.Mean()) {
		c.heard = now
		c.decrease(c.rate/2, now)
		c.limited = false // the path may be another one afterwards
		c.delay.End(now)
		c.startInterval(now)
		return
	}
	if now.Sub(c.intervalStart) < max(controlInterval, c.delay.Mean()) || c.delay.Samples() == 0 {
		return
	}
	seconds := now.Sub(c.intervalStart).Seconds()
	used, delivered := 8*float64(c.sentBytes)/seconds, 8*float64(c.ackedBytes)/seconds
	queued := c.delay.End(now)
	loss := 0.0
	if c.lost+c.ok >= minLossSample {
		loss = float64(c.lost) / float64(c.lost+c.ok)
		c.lost, c.ok = 0, 0
	}
	switch hold := now.Before(c.holdUntil); {
	case queued > queuedelay.Threshold && !hold:
		c.decrease(max(minBackoff*c.rate, backoff*min(c.rate, delivered)), now)
	case loss > maxLoss && !hold:
		c.decrease(c.rate*(1-loss/2), now)
	case queued > queuedelay.Threshold/2 || hold || used < minUsage*c.rate:
	case c.limited:
		c.rate += seconds * (c.max - c.min) / additiveIncrease
	default:
		c.rate *= startupGain
	}
	c.rate = min(max(c.rate, c.min), c.max)
	c.startInterval(now)
}

// decrease lowers the rate and lets the queue drain before the next decision.
func (c *rateController) decrease(rate float64, now time.Time) {
	c.rate, c.limited = max(rate, c.min), true
	c.holdUntil = now.Add(max(controlInterval, c.delay.Mean()))
}

func (c *rateController) startInterval(now time.Time) {
	c.intervalStart, c.sentBytes, c.ackedBytes = now, 0, 0
}
