package transport

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// outboxShare is how much memory an outbox has for each datagram that it can hold, in bytes: most answers are
// acks, and much smaller.
const outboxShare = 256

// outbox sends a loop's datagrams: at once, or, while the loop handles a batch, together at the end of it, in
// order. It cannot tell the loop's goroutine from others, so it collects what any of them sends meanwhile;
// otherwise the datagrams of a connection would overtake each other. It is safe for concurrent use.
type outbox struct {
	pc   BatchConn
	sent *sentCounters

	mu         sync.Mutex
	collecting bool
	queue      []Datagram       // parts of memory
	failed     []*atomic.Uint64 // where to count a failure of each, or nil
	memory     []byte
}

// newOutbox returns one that collects at most n datagrams.
func newOutbox(pc BatchConn, n int, sent *sentCounters) outbox {
	return outbox{
		pc:     pc,
		sent:   sent,
		queue:  make([]Datagram, 0, n),
		failed: make([]*atomic.Uint64, 0, n),
		memory: make([]byte, 0, max(n*outboxShare, wire.MaxDatagram)),
	}
}

// send sends b, or a copy of it later. If the packet connection does not take it, failed counts that, unless it
// is nil.
func (o *outbox) send(b []byte, to netip.AddrPort, failed *atomic.Uint64) {
	if o.keep(b, to, failed) {
		return
	}
	_, err := o.pc.WriteTo(b, to)
	o.sent.count(len(b), err)
	if err != nil && failed != nil {
		failed.Add(1)
	}
}

// keep reports whether it has collected a copy of b.
func (o *outbox) keep(b []byte, to netip.AddrPort, failed *atomic.Uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.collecting {
		return false
	}
	if len(o.queue) == cap(o.queue) || len(b) > cap(o.memory)-len(o.memory) {
		o.empty()
	}
	if len(b) > cap(o.memory) {
		return false
	}
	start := len(o.memory)
	o.memory = append(o.memory, b...)
	o.queue = append(o.queue, Datagram{Buf: o.memory[start:], N: len(b), Addr: to})
	o.failed = append(o.failed, failed)
	return true
}

// collect begins to collect.
func (o *outbox) collect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.collecting = true
}

// flush sends what was collected and ends that.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.empty()
	o.collecting = false
}

// empty sends what was collected. What comes after it has to wait for the lock.
func (o *outbox) empty() {
	for rest := o.queue; len(rest) > 0; {
		n, err := o.pc.WriteBatch(rest)
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
	clear(o.failed) // they keep connections in memory
	o.queue, o.failed, o.memory = o.queue[:0], o.failed[:0], o.memory[:0]
}
