package endpoint

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// serve runs until the listener is stopped or the packet connection fails, and then stops the other
// shards. If a handler ends the goroutine, serve is called again by another one.
func (s *shard) serve() error {
	err := s.run(s)
	s.common.stop()
	s.publish()
	s.closeAll(err)
	return err
}

// receive handles a datagram from any sender.
func (s *shard) receive(now time.Time, d datagram) {
	s.counters.batch.DatagramsReceived++
	s.counters.batch.BytesReceived += uint64(len(d.b))
	h, err := wire.ParseHeader(d.b)
	if err != nil {
		s.receiveHandshake(now, d)
		return
	}
	switch c := s.lookup(d.from, h); {
	case c == nil:
		s.hintUnknown(now, d, h)
	case c.shard != s:
		s.forward(c, d)
	default:
		s.receiveFor(now, c, d, s)
	}
}

func (s *shard) receiveHandshake(now time.Time, d datagram) {
	t, err := wire.ParseType(d.b)
	switch {
	case err != nil:
		s.count(session.Malformed)
	case t == wire.HelloType:
		s.receiveHello(now, d.from, d.b)
	default:
		s.count(session.Unexpected)
	}
}

// lookup returns the connection with the session id of the header, or on the path; or nil.
func (s *shard) lookup(from session.Path, h wire.Header) *Conn {
	if h.Long {
		return s.common.byID(h.ID)
	}
	return s.conns.get(from)
}

// receiveFor handles a datagram of a connection of this shard, which arrived at the shard via.
func (s *shard) receiveFor(now time.Time, c *Conn, d datagram, via *shard) {
	defer c.recovered(s.handler)
	r := c.input(now, d.from, d.b)
	c.logPath(r, s.common.log)
	s.count(r.verdict)
	if r.verdict == session.Payload && c.phase == opened && c.via == via && d.from == r.remote {
		c.deliverPayload(now, r, s.handler) // the address is the same, and no timer is due earlier
		return
	}
	announced := s.register(now, c, r.state)
	if r.state == session.Open {
		if r.remote != d.from {
			via = c.via
		}
		s.setPath(now, c, r.remote, via)
	}
	if announced {
		c.deliver(now, r, s.handler)
	}
	s.reschedule(now, c)
}

// hintUnknown counts a datagram of no session, and sends a hint to its sender, within a rate limit
// and if the hint is not longer than the datagram. It ignores repeated closes.
func (s *shard) hintUnknown(now time.Time, d datagram, h wire.Header) {
	if h.Kind == wire.CloseKind {
		return
	}
	s.drops().UnknownSession++
	if len(d.b) >= wire.UnknownSize(h) && s.mayHint(now) {
		s.send(wire.AppendUnknown(s.out[:0], wire.Unknown{Echo: h}), d.from)
	}
}

func (s *shard) forward(c *Conn, d datagram) {
	first, ok := c.shard.mailbox.put(forwarded{conn: c, via: s, datagram: d})
	if !ok {
		s.drops().Overrun++
		return
	}
	s.counters.batch.Forwarded++
	if first {
		c.shard.interrupt()
	}
}

// endBatch handles the mailbox, and publishes the results of the batch.
func (s *shard) endBatch(now time.Time) {
	if s.mailbox.filled.Load() {
		s.readMailbox(now)
	}
	s.publish()
}

func (s *shard) readMailbox(now time.Time) {
	mail := s.mailbox.take()
	for _, f := range mail.calls {
		f(now)
	}
	for i := range mail.forwarded {
		if s.stopped.Load() {
			break
		}
		f := &mail.forwarded[i]
		if f.conn.phase != ended {
			s.receiveFor(now, f.conn, f.datagram, f.via)
		} else if h, err := wire.ParseHeader(f.b); err == nil {
			s.hintUnknown(now, f.datagram, h)
		}
	}
	mail.clear() // releases connections
}
