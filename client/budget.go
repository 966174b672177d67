package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// rateWindow is the time over which bit rates are measured. At 15 datagrams per second, one
	// datagram more or less changes the rate by 7 %.
	rateWindow = time.Second
	// maxEvery is the maximum of limits.every.
	maxEvery = 4
	// headroom is the maximum share of the limit that the expected rate of the level below may
	// take. Otherwise the controller does not return to that level.
	headroom = 0.9
	// minCalm and maxCalm bound the number of consecutive windows with enough headroom before the
	// controller returns to the level below. If the rate exceeds the limit again within failWindows
	// windows of the return, the number doubles.
	minCalm     = 3
	maxCalm     = 60
	failWindows = 5
)

// budgetLevels holds the limits of each level of a budget. Each level has a lower bit rate than the
// level before: first by less redundancy, then by fewer datagrams. The last redundant payload is
// removed last, because at equal bit rates few datagrams with redundancy deliver more than many
// without.
var budgetLevels = func() (all []limits) {
	for n := rpcdelta.MaxRedundancy; n > 2; n-- {
		all = append(all, limits{n, 1})
	}
	return append(all, limits{2, 1}, limits{2, 1.5}, limits{2, 2}, limits{1, 2}, limits{1, 3}, limits{1, maxEvery}, limits{0, maxEvery})
}()

var maxLevel = len(budgetLevels) - 1

// limits are the settings of an RPC that a budget controls.
type limits struct {
	redundancy int     // maximum number of redundant payloads
	every      float64 // minimum mean number of frames in a payload of an adaptive RPC
}

// budget keeps the bit rate of a connection below a limit. The zero value has no limit.
type budget struct {
	configured float64 // Config.Bandwidth in bits/s; 0: none
	path       float64 // limit of the path in bits/s; 0: none
	level      int     // index in budgetLevels

	rate     float64 // bit rate of the last window, in bits/s
	overhead float64 // part of rate that is headers of datagrams
	over     uint64  // number of bits sent above the configured limit

	calm, needed int // consecutive windows with headroom, and the number that is required to return to the level below
	trial        int // windows since the controller returned to this level; 0 if it did not return
}

func (b *budget) limits() limits { return budgetLevels[b.level] }

// limit returns the limit in force, in bits/s; 0: none.
func (b *budget) limit() float64 {
	if b.configured == 0 || b.path == 0 {
		return max(b.configured, b.path)
	}
	return min(b.configured, b.path)
}

// gain returns the largest factors by which the bits of headers and contents decrease from the
// level below to this one. Frames that share a payload are smaller, but at least half as large.
func gain(level int) (headers, contents float64) {
	below, at := budgetLevels[level-1], budgetLevels[level]
	if at.every > below.every {
		headers = at.every / below.every
		return headers, (1 + headers) / 2
	}
	return 1, float64(below.redundancy+1) / float64(at.redundancy+1)
}

// step processes the traffic of a window and the largest redundancy that an RPC uses. It reports
// whether the limits have changed.
func (b *budget) step(elapsed time.Duration, sent traffic, redundancy int) bool {
	if elapsed >= 2*rateWindow {
		return false // the first window, or there was no connection
	}
	before, limit := b.level, b.limit()
	b.rate, b.overhead = float64(sent.limited)/elapsed.Seconds(), float64(sent.overhead)/elapsed.Seconds()
	if b.configured != 0 && b.rate > b.configured {
		b.over += uint64((b.rate - b.configured) * elapsed.Seconds())
	}
	if b.trial > 0 {
		b.trial++
	}
	switch {
	case limit == 0:
		b.level, b.calm, b.trial = 0, 0, 0
	case b.rate > limit:
		b.reduce(limit, redundancy)
	case b.level > 0 && b.rateBelow() <= headroom*limit:
		b.relax()
	default:
		b.calm = 0
	}
	return b.level != before
}

// rateBelow returns the highest rate that is expected at the level below.
func (b *budget) rateBelow() float64 {
	headers, contents := gain(b.level)
	return b.overhead*headers + (b.rate-b.overhead)*contents
}

// reduce raises the level as far as necessary. Levels that only limit the redundancy above the one
// in use have no effect.
func (b *budget) reduce(limit float64, redundancy int) {
	b.calm = 0
	if b.level == maxLevel {
		return
	}
	if b.trial > 0 && b.trial <= failWindows {
		b.needed = min(2*b.needed, maxCalm)
	}
	b.trial = 0
	overhead, rest := b.overhead, b.rate-b.overhead
	for overhead+rest > limit && b.level < maxLevel {
		b.level++
		if l := b.limits(); l.every > budgetLevels[b.level-1].every || l.redundancy < redundancy {
			headers, contents := gain(b.level)
			overhead, rest = overhead/headers, rest/contents
		}
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
	st := BudgetStats{Limit: int(b.configured), Path: int(b.path), OverBits: b.over, Redundancy: l.redundancy, FramesPerPayload: l.every}
	if b.configured != 0 {
		st.BitsPerSecond = b.rate
	}
	return st
}

// meter measures the bit rates of both directions.
type meter struct {
	start          time.Time // start of the current window
	total          traffic   // totals at start
	sent, received float64   // bit rates of the last window, in bits/s
}

// traffic counts bits with all headers down to IP. limited is the part of sent to which
// Config.Bandwidth applies, and overhead the headers in that part.
type traffic struct{ sent, received, limited, overhead uint64 }

// without removes bits of the limited traffic, and their part of the headers.
func (t *traffic) without(bits uint64) {
	if t.limited > 0 {
		rest := t.limited - min(bits, t.limited)
		t.overhead = t.overhead * rest / t.limited
		t.limited = rest
	}
}

// trafficOf returns the traffic of datagrams that have headers of that size.
func trafficOf(t *transport.Stats, headers uint64) traffic {
	// The few path size probes at the start of a session are no reason to hold calls back.
	limited := t.DatagramsSent - t.ProbesSent
	return traffic{
		sent:     8 * (t.BytesSent + endpoint.IPSize*t.DatagramsSent),
		received: 8 * (t.BytesReceived + endpoint.IPSize*t.DatagramsReceived),
		limited:  8 * (t.BytesSent - t.ProbeBytes + endpoint.IPSize*limited),
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
