package transport

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/gate"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// shard is a listener's packet connection and the loop that serves it, with the connections that began there.
// Nothing that it does for a datagram of these waits for another shard.
type shard struct {
	loop
	listener *Listener
	counters listenerCounters
	pokes    pokes
	mailbox  mailbox

	// Only the loop touches these.
	handler Handler
	batches batchHandler // the same, or nil
	tally   tally
	conns   addresses // of open ones, of other shards too
	timers  timers    // of this shard's connections
	cookies *gate.Cookies
	start   time.Time
	hints   gate.Bucket
	rate    gate.Rate // of hints
	buffers session.Buffers
	out     [wire.HelloSize]byte // an answer to somebody without a connection
}

// hintRate is how many answers that nobody can rely on a listener sends a second at most, over all addresses;
// each shard has its part.
const hintRate = 100

// newShard returns one of so many shards.
func newShard(l *Listener, pc PacketConn, shards int) *shard {
	now, rate := time.Now(), max(hintRate/shards, 1)
	s := &shard{
		listener: l,
		conns:    newAddresses(),
		timers:   newTimers(now),
		cookies:  gate.NewCookies(now),
		start:    now,
		rate:     gate.PerSecond(rate, rate),
	}
	s.loop = newLoop(pc, l.cfg.Tick, listenerBatch, &s.counters.sent, l.log)
	return s
}

// serves sets the handler. It is called once, before serve.
func (s *shard) serves(h Handler) {
	s.handler = h
	s.batches, _ = h.(batchHandler)
}

// serve runs until the listener is stopped, or ends because of an error, and stops the other
// shards. If a handler ends the goroutine, another one calls serve again.
func (s *shard) serve() error {
	err := s.run(s)
	s.listener.stop()
	s.publish()
	s.closeAll(err)
	return err
}

// receive takes a datagram from anybody.
func (s *shard) receive(now time.Time, d datagram) {
	s.tally.received++
	s.tally.bytes += uint64(len(d.b))
	if h, err := wire.ParseHeader(d.b); err == nil {
		s.sealed(now, d, h)
		return
	}
	s.unsealed(now, d)
}

// unsealed takes what is not a sealed datagram.
func (s *shard) unsealed(now time.Time, d datagram) {
	t, err := wire.ParseType(d.b)
	switch {
	case err != nil:
		s.count(session.Malformed)
	case t == wire.HelloType:
		s.hello(now, d.from, d.b)
	default:
		s.count(session.Unexpected)
	}
}

// sealed takes a datagram that belongs to a session, or says so.
func (s *shard) sealed(now time.Time, d datagram, h wire.Header) {
	switch c := s.lookup(d.from, h); {
	case c == nil:
		s.unknown(now, d, h)
	case c.shard != s:
		s.handOver(c, d)
	default:
		s.give(now, c, d, h, s)
	}
}

// lookup returns the connection that a datagram names, or that has its address; or nil.
func (s *shard) lookup(from netip.AddrPort, h wire.Header) *Conn {
	if h.Long {
		return s.listener.byID(h.ID)
	}
	return s.conns.at(from)
}

// give gives a connection of this shard a datagram with its header, which came to the shard via.
func (s *shard) give(now time.Time, c *Conn, d datagram, h wire.Header, via *shard) {
	payload, number, v := c.inputSealed(now, d.from, d.b, h)
	s.count(v)
	if v == session.Payload && c.life == alive && c.via == via {
		c.deliverPayload(now, payload, number, len(d.b), s.handler) // it has not moved, and nothing is due earlier than it was
		return
	}
	r := c.received(payload, v, len(d.b))
	known := s.admit(now, c, r.state)
	if r.state == session.Open {
		if r.remote != d.from {
			via = c.via
		}
		s.locate(now, c, r.remote, via)
	}
	if known {
		c.deliver(now, r, s.handler)
	}
	s.settle(now, c)
}

// unknown counts a datagram of no session, and says so to its sender, unless that would be more than it sent, or
// was done too often lately. The second copy of a close is no surprise.
func (s *shard) unknown(now time.Time, d datagram, h wire.Header) {
	if h.Kind == wire.CloseKind {
		return
	}
	s.counters.unknownSession.Add(1)
	if len(d.b) >= wire.UnknownSize(h) && s.mayHint(now) {
		s.send(wire.AppendUnknown(s.out[:0], wire.Unknown{Echo: h}), d.from)
	}
}

// mayHint reports whether one more answer may be sent that nobody can rely on.
func (s *shard) mayHint(now time.Time) bool {
	return s.hints.Take(max(now.Sub(s.start), 0), s.rate)
}

// send sends an answer that belongs to no session.
func (s *shard) send(b []byte, to netip.AddrPort) {
	s.outbox.send(b, to, nil)
}

func (s *shard) count(v session.Verdict) { s.tally.verdicts[v]++ }

// publish has others see what a batch has brought.
func (s *shard) publish() {
	s.tally.publish(&s.counters)
	if s.batches != nil {
		s.batches.Handled()
	}
}
