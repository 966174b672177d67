package endpoint

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/transport"
)

// batchSize is the maximum number of datagrams that a loop reads by one call, and that its outbox
// queues, with at most that many bytes.
type batchSize struct{ reads, writes, bytes int }

// A dialed connection has one peer, and a process may have thousands of them. A listener sends to
// many peers at once.
var (
	listenerBatch = batchSize{reads: 64, writes: 256, bytes: 128 << 10}
	dialerBatch   = batchSize{reads: 4, writes: 4, bytes: wire.MaxDatagram}
)

// outbox queues the datagrams of a loop's connections and writes them in order. While the loop
// handles a batch, all are written together at its end; otherwise each sender writes the queue as
// soon as it has released the lock of its connection, unless it has more to send. It is safe for
// concurrent use.
type outbox struct {
	pc   transport.BatchConn
	sent *sentCounters

	mu       sync.Mutex
	batching bool
	queue    []transport.Datagram // parts of memory
	failed   []*atomic.Uint64     // counter of failures for each datagram, or nil
	memory   []byte
}

func newOutbox(pc transport.BatchConn, most batchSize, sent *sentCounters) outbox {
	return outbox{
		pc:     pc,
		sent:   sent,
		queue:  make([]transport.Datagram, 0, most.writes),
		failed: make([]*atomic.Uint64, 0, most.writes),
		memory: make([]byte, 0, most.bytes),
	}
}

// add queues a copy of b, which is at most [wire.MaxDatagram] bytes. If the packet connection
// rejects it, failed is incremented unless it is nil.
func (o *outbox) add(b []byte, to session.Path, failed *atomic.Uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == cap(o.queue) || len(b) > cap(o.memory)-len(o.memory) {
		o.writeQueue()
	}
	start := len(o.memory)
	o.memory = append(o.memory, b...)
	o.queue = append(o.queue, transport.Datagram{Buf: o.memory[start:], N: len(b), Addr: to.Addr, Local: to.Local})
	o.failed = append(o.failed, failed)
}

// connOutbox is the outbox of one connection, which shares its queue with others.
type connOutbox struct {
	*outbox
	failed atomic.Uint64 // datagrams that the packet connection rejected
}

// enqueue is the output function of the connection's session. It is called with the lock of the
// connection held; write is called after that was released.
func (o *connOutbox) enqueue(to session.Path, b []byte) { o.add(b, to, &o.failed) }

// write writes the queue, unless the loop will do so at the end of a batch.
func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.batching {
		o.writeQueue()
	}
}

// waiting returns the number of datagrams in the queue.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// setBatching defers writes, or writes the queue and defers them no longer.
func (o *outbox) setBatching(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !on {
		o.writeQueue()
	}
	o.batching = on
}

// writeQueue writes the queue. The lock is held, so that datagrams stay in order.
func (o *outbox) writeQueue() {
	for rest := o.queue; len(rest) > 0; {
		n, err := o.writeBatch(rest)
		o.sent.add(rest[:n])
		if err == nil {
			break
		}
		o.sent.fail(err)
		if failed := o.failed[len(o.queue)-len(rest)+n]; failed != nil {
			failed.Add(1)
		}
		rest = rest[n+1:]
	}
	clear(o.failed) // releases connections
	o.queue, o.failed, o.memory = o.queue[:0], o.failed[:0], o.memory[:0]
}

func (o *outbox) writeBatch(batch []transport.Datagram) (int, error) {
	if o.batching || len(batch) > 1 || batch[0].Local.IsValid() {
		return o.pc.WriteBatch(batch)
	}
	if _, err := o.pc.WriteTo(batch[0].Bytes(), batch[0].Addr); err != nil {
		return 0, err
	}
	return 1, nil
}

// sendQuiet is the time without a failure after which sending counts as restored.
const sendQuiet = 5 * time.Second

// downAfter is the time for which all sends must fail before the network counts as lost.
const downAfter = time.Second

// sendMonitor logs when a packet connection starts to reject datagrams, for lack of buffers,
// permission or a route or for their size, and when that has ended: two records for each such
// period, whatever the number of failures. Only the loop uses it.
type sendMonitor struct {
	log          *slog.Logger
	sent, failed uint64    // counters of the outbox at the last check
	before       uint64    // number of failures before the current period of failures
	first, last  time.Time // times of failures in that period; zero if sending works
	since        time.Time // time of the first failure without a success after it; zero if none
}

// check compares the counters of the outbox with those of its last call, and reports, once in
// downAfter, whether the network of the packet connection's address was lost.
func (m *sendMonitor) check(now time.Time, o *outbox) (down bool) {
	sent, failed := o.sent.datagrams.Load(), o.sent.failed.Load()
	if sent == m.sent && failed == m.failed {
		return false
	}
	if sent != m.sent {
		m.since = time.Time{}
	} else if m.since.IsZero() {
		m.since = now
	}
	if down = failed != m.failed && !m.since.IsZero() && now.Sub(m.since) >= downAfter; down {
		m.since = now
	}
	switch {
	case failed != m.failed:
		cause := o.sent.cause.Swap(nil)
		if m.first.IsZero() && cause != nil {
			m.first, m.before = now, m.failed
			m.log.Warn("datagrams not sent", "local", o.pc.LocalAddr(), "error", *cause)
		}
		m.last = now
	case !m.first.IsZero() && now.Sub(m.last) >= sendQuiet:
		m.log.Info("datagrams sent again", "local", o.pc.LocalAddr(), "failed", failed-m.before, "lasted", m.last.Sub(m.first))
		m.first = time.Time{}
	}
	m.sent, m.failed = sent, failed
	return down
}
