package endpoint

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/transport"
)

// past is before all times of the clock, and forever is after all of them.
var past, forever = time.Unix(1, 0), time.Unix(1<<40, 0) //nolint:forbidigo // no step of the wall clock matters here

// endpoint is the part of a listener's shard or of a dialed connection that a loop calls.
type endpoint interface {
	// receive handles a received datagram.
	receive(now time.Time, d datagram)
	// endBatch handles the work that other goroutines have queued for this one, see
	// [loop.interrupt].
	endBatch(now time.Time)
	// tick handles timers.
	tick(now time.Time)
}

type datagram struct {
	from session.Path
	b    []byte // valid until the next read; longer than [wire.MaxDatagram] if it was truncated
}

// loop reads datagrams and calls an endpoint, in one goroutine, until it is stopped.
type loop struct {
	pc       transport.BatchConn
	interval time.Duration // between ticks
	stopped  atomic.Bool
	done     chan struct{}        // closed when the goroutine has ended
	batch    []transport.Datagram // being handled
	message  []byte               // buffer: the reliable message that a handler is called with
	outbox   outbox
	monitor  sendMonitor
}

// newLoop returns a loop that reads and writes batches of at most that size, and counts sent
// datagrams.
func newLoop(pc transport.PacketConn, interval time.Duration, most batchSize, sent *sentCounters, log *slog.Logger) loop {
	const size = wire.MaxDatagram + 1
	memory := make([]byte, most.reads*size)
	in := make([]transport.Datagram, most.reads)
	for i := range in {
		in[i].Buf = memory[i*size : (i+1)*size : (i+1)*size]
	}
	b := batched(pc)
	return loop{
		pc:       b,
		interval: interval,
		done:     make(chan struct{}),
		batch:    in,
		outbox:   newOutbox(b, most, sent),
		monitor:  sendMonitor{log: log},
	}
}

// run ticks regularly. It returns nil after stop, or else the error of the packet connection.
func (l *loop) run(e endpoint) error {
	next := time.Now().Add(l.interval)
	if err := l.pc.SetReadDeadline(next); err != nil {
		return err
	}
	for !l.stopped.Load() {
		n, err := l.pc.ReadBatch(l.batch)
		expired := errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !expired {
			if l.stopped.Load() {
				return nil
			}
			return err
		}
		// One reading of the clock for the batch, which is handled within microseconds.
		now := time.Now()
		due := !now.Before(next)
		if due {
			next = nextTick(next, now, l.interval)
		}
		if due || expired {
			// An earlier stop or interrupt is noticed below; a later one ends the next read.
			if err := l.pc.SetReadDeadline(next); err != nil {
				return err
			}
		}
		l.handle(e, now, l.batch[:n], due)
	}
	return nil
}

// handle passes a batch to the endpoint, and ticks if that is due. Datagrams sent meanwhile are
// written together.
func (l *loop) handle(e endpoint, now time.Time, batch []transport.Datagram, due bool) {
	l.outbox.setBatching(true)
	defer l.outbox.setBatching(false)
	for i := range batch {
		if l.stopped.Load() {
			return
		}
		e.receive(now, datagram{from: session.Path{Addr: batch[i].Addr, Local: batch[i].Local}, b: batch[i].Bytes()})
	}
	e.endBatch(now)
	if due {
		e.tick(now)
	}
}

// nextTick returns the first tick after now in the rhythm of last, which was due.
func nextTick(last, now time.Time, interval time.Duration) time.Time {
	return last.Add((now.Sub(last)/interval + 1) * interval)
}

// stop ends run. It may be called by any goroutine, more than once.
func (l *loop) stop() {
	l.stopped.Store(true)
	l.interrupt()
}

// interrupt ends the current read, so that endBatch is called soon. Any goroutine may call it.
func (l *loop) interrupt() {
	// An error means that the packet connection is closed, which ends run.
	_ = l.pc.SetReadDeadline(past)
}

// restartOnGoexit runs f as the whole of a goroutine. If a handler that f calls ends the goroutine
// with runtime.Goexit, as t.FailNow does in a game's test, f runs again in another goroutine; its
// state must therefore be valid whenever a handler runs. A panic that [Conn.recovered] does not
// recover ends the process.
func restartOnGoexit(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(v)
		}
		go restartOnGoexit(f)
	}()
	f()
	returned = true
}
