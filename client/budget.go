package client

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// rateWindow is the time over which bit rates are measured. At 15 datagrams per second, one
	// datagram more or less changes the rate by 7 %.
	rateWindow = time.Second
	// maxLevel is the highest level of a budget. Each level reduces the bit rate of the one below:
	// the first ones reduce redundancy, the others put more frames into a datagram.
	maxLevel = rpcdelta.MaxRedundancy + maxEvery - 1
	// maxEvery is the maximum of limits.every.
	maxEvery = 4
	// headroom is the share of the limit that the level below may use if the controller is to
	// return to it.
	headroom = 0.9
	// minCalm and maxCalm bound the number of consecutive windows with enough headroom before the
	// controller returns to the level below. Each time that fails within failWindows, the number
	// doubles.
	minCalm     = 3
	maxCalm     = 60
	failWindows = 5
)

// budget keeps the bit rate of a connection below a limit. The zero value has no limit.
type budget struct {
	limit float64 // bits/s; 0: none
	level int

	rate     float64 // of the last window, in bits/s
	overhead float64 // part of rate that is headers of datagrams
	over     uint64  // bits above the limit

	calm, needed int // consecutive windows with headroom; number that is required
	trial        int // windows since the controller returned to this level; 0: it did not
}

// limits are the settings of an RPC that a budget controls.
type limits struct {
	redundancy int // maximum number of redundant payloads
	every      int // minimum number of frames in a payload of an adaptive RPC
}

func (b *budget) limits() limits {
	return limits{
		redundancy: max(rpcdelta.MaxRedundancy-b.level, 0),
		every:      1 + max(b.level-rpcdelta.MaxRedundancy, 0),
	}
}

// gain returns the largest factor by which the rate decreases from the level below to this one, and
// the part of the rate that does not change. Less redundancy does not change the headers of
// datagrams; fewer datagrams may change everything.
func (b *budget) gain(level int) (gain, fixed float64) {
	if n := level - rpcdelta.MaxRedundancy; n > 0 {
		return float64(n+1) / float64(n), 0
	}
	copies := float64(rpcdelta.MaxRedundancy - level + 1)
	return (copies + 1) / copies, b.overhead
}

// step processes the traffic of a window and the largest redundancy that an RPC uses. It reports
// whether the limits have changed.
func (b *budget) step(elapsed time.Duration, sent traffic, redundancy int) bool {
	if b.limit == 0 || elapsed >= 2*rateWindow {
		return false // the first window, or there was no connection
	}
	b.rate, b.overhead = float64(sent.limited)/elapsed.Seconds(), float64(sent.overhead)/elapsed.Seconds()
	before := b.level
	if b.trial > 0 {
		b.trial++
	}
	switch {
	case b.rate > b.limit:
		b.over += uint64((b.rate - b.limit) * elapsed.Seconds())
		b.reduce(redundancy)
	case b.level > 0 && b.rateBelow() <= headroom*b.limit:
		b.relax()
	default:
		b.calm = 0
	}
	return b.level != before
}

// rateBelow returns the highest rate that is expected at the level below.
func (b *budget) rateBelow() float64 {
	gain, fixed := b.gain(b.level)
	return fixed + (b.rate-fixed)*gain
}

// reduce raises the level as far as necessary, from the first level that has an effect.
func (b *budget) reduce(redundancy int) {
	b.calm = 0
	if b.level == maxLevel {
		return
	}
	if b.trial > 0 && b.trial <= failWindows {
		b.needed = min(2*b.needed, maxCalm)
	}
	b.trial = 0
	b.level = max(b.level, rpcdelta.MaxRedundancy-redundancy)
	for rate := b.rate; rate > b.limit && b.level < maxLevel; b.level++ {
		gain, fixed := b.gain(b.level + 1)
		rate = fixed + (rate-fixed)/gain
	}
}

// relax returns to the level below if there was enough headroom for long enough.
func (b *budget) relax() {
	if b.trial > maxCalm {
		b.needed, b.trial = minCalm, 0
	}
	b.needed = max(b.needed, minCalm)
	if b.calm++; b.calm >= b.needed {
		b.level--
		b.calm, b.trial = 0, 1
	}
}

func (b *budget) stats() BudgetStats {
	l := b.limits()
	return BudgetStats{Limit: int(b.limit), BitsPerSecond: b.rate, OverBits: b.over, Redundancy: l.redundancy, FramesPerPayload: l.every}
}

// meter measures the bit rates of both directions.
type meter struct {
	start          time.Time // of the current window
	total          traffic   // until start
	sent, received float64   // of the last window, in bits/s
}

// traffic counts bits with all headers down to IP. limited is the part of sent to which
// Config.Bandwidth applies, and overhead the headers in that part.
type traffic struct{ sent, received, limited, overhead uint64 }

// trafficOf returns the traffic of datagrams that have headers of that size.
func trafficOf(t *transport.Stats, headers uint64) traffic {
	// The few path size probes at the start of a session are no reason to hold calls back.
	limited := t.DatagramsSent - t.ProbesSent
	return traffic{
		sent:     8 * (t.BytesSent + transport.IPSize*t.DatagramsSent),
		received: 8 * (t.BytesReceived + transport.IPSize*t.DatagramsReceived),
		limited:  8 * (t.BytesSent - t.ProbeBytes + transport.IPSize*limited),
		overhead: 8 * headers * limited,
	}
}

// step ends a window, and returns its length and traffic.
func (m *meter) step(now time.Time, total traffic) (elapsed time.Duration, t traffic) {
	elapsed = now.Sub(m.start)
	t = traffic{
		total.sent - m.total.sent, total.received - m.total.received,
		total.limited - m.total.limited, total.overhead - m.total.overhead,
	}
	if !m.start.IsZero() {
		m.sent, m.received = float64(t.sent)/elapsed.Seconds(), float64(t.received)/elapsed.Seconds()
	}
	m.start, m.total = now, total
	return elapsed, t
}
