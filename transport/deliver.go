package transport

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// The methods in this file run in the loop's goroutine.

// received is what the session made of a datagram.
type received struct {
	payload []byte
	number  uint64 // of the datagram, if it was accepted
	size    int    // of the datagram
	verdict session.Verdict
	state   session.State  // after it
	remote  netip.AddrPort // of the peer, after it
}

// input gives any datagram to the session.
func (c *Conn) input(now time.Time, from netip.AddrPort, b []byte) received {
	c.mu.Lock()
	payload, v := c.session.Input(now, from, b)
	c.mu.Unlock()
	return c.received(payload, v, len(b))
}

// inputSealed gives a datagram to the session whose header was read already, and returns its number if that was
// accepted. What else has come of it, if it was no payload, [Conn.received] tells.
func (c *Conn) inputSealed(now time.Time, from netip.AddrPort, b []byte, h wire.Header) (payload []byte, number uint64, v session.Verdict) {
	c.mu.Lock()
	payload, v = c.session.InputSealed(now, from, b, h)
	number = c.session.Number()
	c.mu.Unlock()
	return payload, number, v
}

// received returns what has come of a datagram.
func (c *Conn) received(payload []byte, v session.Verdict, size int) received {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v != session.Payload {
		c.observe()
	}
	return received{
		payload: payload, number: c.session.Number(), size: size, verdict: v,
		state: c.session.State(), remote: c.session.Remote(),
	}
}

// observe counts the round trip if one was just measured. It is called with the lock held.
func (c *Conn) observe() {
	if c.session.RoundTrips() == c.measured {
		return
	}
	c.measured = c.session.RoundTrips()
	_, last := c.session.RTT()
	c.trips.observe(last)
	if c.all != nil {
		c.all.observe(last)
	}
}

// deliver gives what came of a datagram to the handler.
func (c *Conn) deliver(now time.Time, r received, h Handler) {
	open := r.state == session.Open
	if open && c.life == unborn {
		c.life = alive
		h.Opened(c)
		open = c.isOpen() // the handler may have closed it
	}
	if r.verdict == session.Payload { // such a datagram brings nothing else
		if open {
			c.deliverPayload(now, r.payload, r.number, r.size, h)
		}
		return
	}
	for {
		msg, ok := c.receive(now)
		if !ok {
			return
		}
		if c.tap != nil {
			c.tap(TapEvent{At: now, Reliable: true, Body: msg})
		}
		h.Message(c, msg, now)
	}
}

// deliverPayload gives the payload of a datagram of that number and size to the handler.
func (c *Conn) deliverPayload(now time.Time, b []byte, number uint64, size int, h Handler) {
	c.number = number
	if c.tap != nil {
		c.tap(TapEvent{At: now, Number: number, Size: size, Body: b})
	}
	h.Datagram(c, b, now)
}

// receive returns the next reliable message. It stays valid without the lock: only this goroutine
// receives.
func (c *Conn) receive(now time.Time) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Receive(now)
}

// advance does what is due in the session.
func (c *Conn) advance(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.Advance(now)
}

// schedule returns when to advance the session next, and whether it is over.
func (c *Conn) schedule() (next time.Time, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Next(), c.session.State() == session.Closed
}

// isOpen reports whether the session is open; a handler may have closed it since it was last looked at.
func (c *Conn) isOpen() bool { return c.state() == session.Open }

// state returns that of the session.
func (c *Conn) state() session.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.State()
}

// err returns why the session ended.
func (c *Conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	return c.session.Err()
}

// hello answers the session's hello once more.
func (c *Conn) hello(now time.Time, from netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.Hello(now, from)
}

// moved tells the session that this end has another address.
func (c *Conn) moved(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.Moved(now)
}

// takeDeaf reports, once, that the client should try another local address, see [session.Session.TakeDeaf].
func (c *Conn) takeDeaf() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.TakeDeaf()
}

// replace ends the session, since another one takes its place.
func (c *Conn) replace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.Replace()
}

// finish closes the session for a reason that it does not know, if it is not closed yet.
func (c *Conn) finish(code wire.CloseCode, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() != session.Closed {
		c.cause = cause
		c.session.Close(code, "")
	}
}

// bury calls Closed, once, if Opened was called.
func (c *Conn) bury(h Handler) {
	if c.life == alive {
		c.life = dead
		h.Closed(c, c.err())
	}
	c.life = dead
}
