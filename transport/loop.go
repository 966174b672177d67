package transport

import (
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// endpoint is what a loop drives: a Listener or a dialed connection.
type endpoint interface {
	// receive takes the datagram that the loop has read.
	receive(now time.Time, d datagram)
	// tick does what is due.
	tick(now time.Time)
}

// datagram is one that came.
type datagram struct {
	from netip.AddrPort
	b    []byte // valid until the loop reads again
}

// loop reads datagrams and keeps time, in one goroutine, until it is stopped.
type loop struct {
	pc       PacketConn
	interval time.Duration
	stopped  atomic.Bool
	done     chan struct{} // closed when run and what follows it are over
	buf      [MaxDatagram + 1]byte
}

// run returns nil after stop, else the error of the packet connection.
func (l *loop) run(e endpoint) error {
	next := time.Now().Add(l.interval)
	if err := l.pc.SetReadDeadline(next); err != nil {
		return err
	}
	for !l.stopped.Load() {
		n, from, err := l.pc.ReadFrom(l.buf[:])
		now := time.Now()
		switch {
		case err == nil:
			e.receive(now, datagram{from: from, b: l.buf[:n]})
		case !errors.Is(err, os.ErrDeadlineExceeded):
			if l.stopped.Load() {
				return nil
			}
			return err
		}
		if now.Before(next) {
			continue
		}
		e.tick(now)
		next = nextTick(next, now, l.interval)
		// A stop that comes before this is seen by the loop's condition, a later one ends the read.
		if err := l.pc.SetReadDeadline(next); err != nil {
			return err
		}
	}
	return nil
}

// nextTick returns the first tick after now in the rhythm of last, which was due.
func nextTick(last, now time.Time, interval time.Duration) time.Time {
	return last.Add((now.Sub(last)/interval + 1) * interval)
}

// stop makes run return soon. It can be called from anywhere, more than once.
func (l *loop) stop() {
	l.stopped.Store(true)
	// An error means that the packet connection is closed, which ends run too.
	_ = l.pc.SetReadDeadline(time.Unix(1, 0))
}
