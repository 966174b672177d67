package transport

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// endpoint is what a loop drives: a listener's shard or a dialed connection.
type endpoint interface {
	// receive takes the datagram that the loop has read.
	receive(now time.Time, d datagram)
	// take ends a batch: it does what other goroutines have left for this one, see [loop.rouse].
	take(now time.Time)
	// tick does what is due.
	tick(now time.Time)
}

// datagram is one that came.
type datagram struct {
	from netip.AddrPort
	b    []byte // valid until the loop reads again; longer than wire.MaxDatagram if it was cut off
}

// The number of datagrams that a loop reads, and sends, by one call. A dialed connection has one peer, so few
// wait, and there may be many of it in a process.
const (
	listenerBatch = 64
	dialerBatch   = 4
)

// loop reads datagrams and keeps time, in one goroutine, until it is stopped.
type loop struct {
	pc       BatchConn
	interval time.Duration
	stopped  atomic.Bool
	done     chan struct{} // closed when run and what follows it are over
	batch    []Datagram    // what is being handled
	outbox   outbox
	watch    sendWatch
}

// newLoop returns a loop that reads at most so many datagrams at a time, and counts what it sends.
func newLoop(pc PacketConn, interval time.Duration, batch int, sent *sentCounters, log *slog.Logger) loop {
	b := batched(pc)
	return loop{
		pc:       b,
		interval: interval,
		done:     make(chan struct{}),
		batch:    arena(batch, wire.MaxDatagram+1),
		outbox:   newOutbox(b, batch, sent),
		watch:    sendWatch{log: log},
	}
}

// run returns nil after stop, else the error of the packet connection.
func (l *loop) run(e endpoint) error {
	next := time.Now().Add(l.interval)
	if err := l.pc.SetReadDeadline(next); err != nil {
		return err
	}
	for !l.stopped.Load() {
		n, err := l.pc.ReadBatch(l.batch)
		ended := errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !ended {
			if l.stopped.Load() {
				return nil
			}
			return err
		}
		// One reading for the whole batch: all of it had come by now, and is handled within microseconds.
		now := time.Now()
		due := !now.Before(next)
		if due {
			next = nextTick(next, now, l.interval)
		}
		if due || ended {
			// What happens before this, a stop or a rouse, is seen below; what happens later ends the next read.
			if err := l.pc.SetReadDeadline(next); err != nil {
				return err
			}
		}
		l.handle(e, now, l.batch[:n], due)
	}
	return nil
}

// handle gives a batch to the endpoint, and then a tick if it is due. What it sends meanwhile goes out together.
func (l *loop) handle(e endpoint, now time.Time, batch []Datagram, due bool) {
	l.outbox.collect()
	defer l.outbox.flush()
	for i := range batch {
		if l.stopped.Load() {
			return
		}
		e.receive(now, datagram{from: batch[i].Addr, b: batch[i].Bytes()})
	}
	e.take(now)
	if due {
		e.tick(now)
	}
}

// nextTick returns the first tick after now in the rhythm of last, which was due.
func nextTick(last, now time.Time, interval time.Duration) time.Time {
	return last.Add((now.Sub(last)/interval + 1) * interval)
}

// stop makes run return soon. It can be called from anywhere, more than once.
func (l *loop) stop() {
	l.stopped.Store(true)
	l.rouse()
}

// rouse has the loop call take soon. It can be called from anywhere.
func (l *loop) rouse() {
	// An error means that the packet connection is closed, which ends run.
	_ = l.pc.SetReadDeadline(past)
}
