package endpoint

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/transport"
)

// observe counts a round-trip time.
func observe(h *transport.RTTHistogram, rtt time.Duration) {
	i := 0
	for bound := range h.Buckets() {
		if rtt <= bound {
			break
		}
		i++
	}
	h.Counts[i]++
	h.Sum += rtt
}

// sentCounters counts sent datagrams. It is safe for concurrent use.
type sentCounters struct {
	datagrams, bytes, failed atomic.Uint64
	cause                    atomic.Pointer[error] // error of the first failure since it was last reset to nil
}

func (c *sentCounters) add(sent []transport.Datagram) {
	var size int
	for i := range sent {
		size += len(sent[i].Bytes())
	}
	c.datagrams.Add(uint64(len(sent)))
	c.bytes.Add(uint64(size))
}

// fail counts a rejected datagram. A closed packet connection is not recorded as a cause: it was
// replaced by another one.
func (c *sentCounters) fail(err error) {
	if c.cause.Load() == nil && !errors.Is(err, net.ErrClosed) {
		first := err // a copy, because it escapes
		c.cause.CompareAndSwap(nil, &first)
	}
	c.failed.Add(1)
}

// shardCounters are the counters of a shard. Atomic counters for each received datagram would cost
// more than parsing it.
type shardCounters struct {
	sent  sentCounters
	batch transport.ListenerStats // since publish; only the loop uses it

	mu        sync.Mutex
	published transport.ListenerStats // counts without sent datagrams
}

// publish makes the counts of a batch visible to addTo. The loop calls it.
func (c *shardCounters) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	addStats(&c.published, &c.batch)
	c.batch = transport.ListenerStats{}
}

func (c *shardCounters) addTo(t *transport.ListenerStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addStats(t, &c.published)
	t.DatagramsSent += c.sent.datagrams.Load()
	t.BytesSent += c.sent.bytes.Load()
	t.SendFailed += c.sent.failed.Load()
}

// addStats adds the counts that a shard publishes.
func addStats(t, o *transport.ListenerStats) {
	addTraffic(&t.Traffic, &o.Traffic)
	t.Forwarded += o.Forwarded
	t.ProtocolErrors += o.ProtocolErrors
	t.Unacknowledged += o.Unacknowledged
}

func addTraffic(t, o *transport.Traffic) {
	t.DatagramsSent += o.DatagramsSent
	t.BytesSent += o.BytesSent
	t.DatagramsReceived += o.DatagramsReceived
	t.BytesReceived += o.BytesReceived
	t.SendFailed += o.SendFailed
	t.Lost += o.Lost
	t.PathMigrations += o.PathMigrations
	t.SmallPaths += o.SmallPaths
	if o.Dropped != (transport.Drops{}) { // most batches have none
		t.Dropped = t.Dropped.Plus(o.Dropped)
	}
	if o.RTTs != (transport.RTTHistogram{}) {
		t.RTTs = t.RTTs.Plus(o.RTTs)
	}
}

// Sum returns the sums of the counts of two connections. The round-trip times and MaxDatagram are
// those of o, or of s where o has none.
func Sum(s, o transport.Stats) transport.Stats {
	addTraffic(&s.Traffic, &o.Traffic)
	s.ProbesSent += o.ProbesSent
	s.ProbeBytes += o.ProbeBytes
	s.LossBursts += o.LossBursts
	s.StreamBytes += o.StreamBytes
	s.Rate, s.Queue = o.Rate, o.Queue
	if o.RTT != 0 {
		s.RTT, s.LastRTT, s.MinRTT = o.RTT, o.LastRTT, o.MinRTT
	}
	if o.MaxDatagram != 0 {
		s.MaxDatagram = o.MaxDatagram
	}
	return s
}

// countEnd counts the end of a connection.
func countEnd(t *transport.ListenerStats, cause error) {
	switch {
	case errors.Is(cause, session.ErrProtocol):
		t.ProtocolErrors++
	case errors.Is(cause, session.ErrUnacknowledged):
		t.Unacknowledged++
	}
}

// dropCounts returns the counters of the verdicts of a session from [session.Malformed] on.
func dropCounts(d *transport.Drops) [6]*uint64 {
	return [...]*uint64{&d.Malformed, &d.WrongSession, &d.Unauthenticated, &d.Duplicate, &d.Late, &d.Unexpected}
}

// dropsOf returns the counts of a session's verdicts from [session.Malformed] on.
func dropsOf(verdicts []uint64) (d transport.Drops) {
	counts := dropCounts(&d)
	for i, n := range verdicts {
		*counts[i] = n
	}
	return d
}
