package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/transport"
)

// events is the connection as one transport connection sees it.
type events struct {
	*Conn
	wake   func(time.Time) // has Tick called then
	opened time.Time
	flush  time.Time // when to send what was collected
	closed error     // why that is over; guarded by Conn.mu
	// violation is why this end closed the connection, if the server did not keep to the protocol.
	violation error
}

var _ transport.Handler = (*events)(nil)

// Opened notes when a connection began.
func (e *events) Opened(link *transport.Conn) { e.wake, e.opened = link.Wake, time.Now() }

// Closed has a lost connection made again.
func (e *events) Closed(link *transport.Conn, err error) {
	c := e.Conn
	if err == nil {
		err = e.violation
	}
	c.worlds.Reset(link)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Transport = c.stats.Transport.Plus(link.Stats())
	if c.link != link {
		e.closed = errors.Join(errors.New("lost at once"), err)
		return // not yet installed, or taken out by Close
	}
	c.link = nil
	for _, s := range c.streams {
		s.suspend()
	}
	if final := c.cfg.final(err); final != nil {
		c.over(final)
		return
	}
	if time.Since(e.opened) >= steady {
		c.wait = 0
	}
	if c.leaving {
		c.wait = max(c.wait, leastWait) // the server may still be shutting down
	}
	if c.cfg.NoReconnect {
		if err == nil && c.leaving {
			err = ErrShutdown
		}
		if err != nil { // else by Close
			c.over(fmt.Errorf("%w: %w", ErrLost, err))
		}
		return
	}
	c.cfg.Logger.Warn("connection lost, reconnecting", "server", c.addr, "error", err)
	ctx, cancel := context.WithCancel(context.Background()) // Renew's; not Dial's, which may have a deadline
	c.stop = cancel
	c.work.Go(func() {
		defer cancel()
		c.reconnect(ctx)
	})
}

// Datagram takes acks, answers, and what the server's worlds send.
func (e *events) Datagram(_ *transport.Conn, b []byte, at time.Time) {
	t, body, err := control.Split(b)
	if err == nil {
		switch t {
		case control.Acks:
			err = e.acks(body)
		case control.Slack:
			err = e.slack(body, at)
		case control.Bound:
			err = e.bound(body)
		case control.Down, control.DownFragment:
			err = e.worlds.HandleDatagram(t, body, at)
		case control.Leaving:
			e.leave()
			e.wake(time.Now())
		default:
			err = control.ErrMalformed
		}
	}
	if err != nil {
		e.malformed()
	}
}

// Tick asks again for what is not bound yet, sends what had to wait, and says when that is to be done next.
func (e *events) Tick(now time.Time) {
	next := e.regulate(now)
	for _, s := range e.all() {
		next = sooner(next, s.tick(now))
	}
	next = sooner(next, e.share(now))
	e.worlds.Tick(now)
	next = sooner(next, e.goOnLeaving(now))
	if !next.IsZero() {
		e.wake(next)
	}
}

// share sends what was collected when its time has come, and says when that is next; zero: never.
func (e *events) share(now time.Time) time.Time {
	every := e.cfg.Tick
	if every <= 0 {
		return time.Time{}
	}
	if !now.Before(e.flush) {
		e.flush = e.flush.Add(every)
		if !now.Before(e.flush) {
			e.flush = now.Add(every)
		}
		_ = e.Flush() // an error is told to the next Send
	}
	return e.flush
}

// sooner gives the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
