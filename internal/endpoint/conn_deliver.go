package endpoint

import (
	"log/slog"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/transport"
)

// The loop's goroutine calls the methods of this file.

type received struct {
	payload []byte
	number  uint64 // packet number of the datagram, if it was accepted
	size    int    // size of the datagram, or of the datagrams of all its parts, in bytes
	verdict session.Verdict
	state   session.State // after the datagram
	remote  session.Path  // path to the peer after the datagram
	small   int           // path size in bytes if the datagram showed that the path is small; otherwise 0
}

func (c *Conn) input(now time.Time, from session.Path, b []byte) received {
	c.mu.Lock()
	defer c.mu.Unlock()
	payload, v := c.session.Input(now, from, b)
	if v != session.Payload {
		c.observeRTT()
	}
	if c.total != nil {
		lost := c.session.Lost()
		c.total.Lost += lost - c.lost
		c.lost = lost
	}
	return received{
		payload: payload, number: c.session.Number(), size: c.session.Size(), verdict: v,
		state: c.session.State(), remote: c.session.Remote(), small: c.observePathSize(),
	}
}

// observePathSize counts each finding that the path is small, and then returns the path size in
// bytes; otherwise it returns 0. It is called with the lock held.
func (c *Conn) observePathSize() int {
	if !c.session.TakeSmall() {
		return 0
	}
	if c.total != nil {
		c.total.SmallPaths++
	}
	return c.session.MaxDatagram()
}

// logPath logs a small path.
func (c *Conn) logPath(r received, log *slog.Logger) {
	if r.small != 0 {
		log.Info("small path", "remote", r.remote.Addr, "datagram", r.small)
	}
}

// observeRTT counts a new measurement. It is called with the lock held.
func (c *Conn) observeRTT() {
	last, n := c.session.Path().Last()
	if n == c.measured {
		return
	}
	c.measured = n
	observe(&c.rtts, last)
	if c.total != nil {
		observe(&c.total.RTTs, last)
	}
}

func (c *Conn) deliver(now time.Time, r received, h Handler) {
	open := r.state == session.Open
	if open && c.phase == pending {
		c.phase = opened
		h.Opened(c)
		open = c.state() == session.Open // the handler may have closed it
	}
	if r.verdict == session.Payload {
		if open {
			c.deliverPayload(now, r, h)
		}
		return
	}
	for {
		msg, ok := c.receive(now, (*session.Session).Receive)
		if !ok {
			c.deliverBulk(now)
			return
		}
		if c.tap != nil {
			c.tap(transport.TapEvent{At: now, Reliable: true, Body: msg})
		}
		h.Message(c, msg, now)
	}
}

// deliverBulk delivers the messages of the bulk channel.
func (c *Conn) deliverBulk(now time.Time) {
	for {
		msg, ok := c.receive(now, (*session.Session).ReceiveBulk)
		switch {
		case !ok:
			return
		case c.bulk == nil:
			c.CloseWith(session.ErrProtocol, "a message of the bulk channel")
			return
		}
		c.bulk(msg, now)
	}
}

func (c *Conn) deliverPayload(now time.Time, r received, h Handler) {
	c.number = r.number
	if c.tap != nil {
		c.tap(transport.TapEvent{At: now, Number: r.number, Size: r.size, Body: r.payload})
	}
	h.Datagram(c, r.payload, now)
}

// receive returns the next reliable message, in the loop's buffer.
func (c *Conn) receive(now time.Time, from func(*session.Session, time.Time, []byte) ([]byte, bool)) (msg []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.loop()
	l.message, ok = from(c.session, now, l.message)
	return l.message, ok
}
