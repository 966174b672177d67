package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/gate"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// A hello that has passed the gate makes a session, but it may be a copy of somebody else's. So the session
// is pending, known by its id alone, and the handler does not hear of it, until a datagram sealed with its keys
// shows that the client has them.

// hello takes a hello from anybody. Until the sender has shown to own its address, all of this costs two
// MACs at most, and no memory.
func (s *shard) hello(now time.Time, from netip.AddrPort, b []byte) {
	hello, err := wire.ParseHello(b)
	switch {
	case err != nil:
		s.count(session.Malformed)
	case hello.Version != wire.Version:
		s.counters.version.Add(1)
		s.refuse(now, from, hello.Nonce, wire.RefuseVersion)
	case !s.cookies.Knows(now, from, hello):
		if hello.Cookie != [wire.CookieSize]byte{} {
			s.counters.cookie.Add(1)
		}
		s.send(wire.AppendRetry(s.out[:0], s.cookies.Retry(now, from, hello)), from)
	case len(hello.Message) == 0:
		s.count(session.Malformed)
	default:
		s.handshake(now, from, hello)
	}
}

// handshake takes a hello whose sender owns its address.
func (s *shard) handshake(now time.Time, from netip.AddrPort, hello wire.Hello) {
	l := s.listener
	hash := gate.HashOf(hello.Message)
	l.handshakes.Lock()
	defer l.handshakes.Unlock()
	if c := l.waiting(hash); c != nil {
		c.hello(now, from)
		return
	}
	if !l.mayWait(from.Addr(), l.cfg.MaxPending) || !l.gate.Admit(now, from) {
		s.counters.limited.Add(1)
		s.refuse(now, from, hello.Nonce, wire.RefuseBusy)
		return
	}
	guest, err := l.gate.Read(now, hello)
	switch {
	case err == nil:
		s.welcome(now, from, hello, guest)
	case errors.Is(err, gate.ErrBusy):
		s.counters.limited.Add(1)
		s.refuse(now, from, hello.Nonce, wire.RefuseBusy)
	default:
		s.count(session.Unauthenticated)
		s.refuse(now, from, hello.Nonce, wire.RefuseKey)
	}
}

// welcome answers a guest, and gives it a session if it is to have one. It is part of a handshake.
func (s *shard) welcome(now time.Time, from netip.AddrPort, hello wire.Hello, guest *gate.Guest) {
	l := s.listener
	if guest.Code == wire.Granted && !l.room(guest.Claims.ClientID, l.cfg.MaxConns) {
		guest.Code = wire.ServerFull
	}
	id := s.newID()
	welcome, secrets, err := l.gate.Answer(guest, id)
	switch {
	case err != nil:
		s.count(session.Unauthenticated)
	case guest.Code != wire.Granted:
		l.log.Debug("connection refused", "remote", from, "code", guest.Code)
		s.refused(guest.Code)
		s.send(welcome, from)
	default:
		s.accept(now, guest, session.Grant{
			Remote: from, Nonce: hello.Nonce, ID: id, Suite: guest.Suite, Secrets: secrets, Welcome: welcome,
		})
	}
}

// refused counts a hello by what it was told.
func (s *shard) refused(code wire.Code) {
	switch code {
	case wire.ServerFull:
		s.counters.full.Add(1)
	case wire.NoSuite:
		s.counters.suite.Add(1)
	default:
		s.counters.token.Add(1)
	}
}

// accept makes a session. It takes the place of one of the same client that is pending. It is part of a
// handshake.
func (s *shard) accept(now time.Time, guest *gate.Guest, g session.Grant) {
	c := &Conn{
		owner: s, shard: s, via: s, pc: s.pc, outbox: &s.outbox, all: &s.counters.trips, id: g.ID, hash: guest.Hash,
		claims: claims{client: guest.Claims.ClientID, data: bytes.Clone(guest.Claims.UserData)},
	}
	c.session = session.NewServer(now, g, session.Config{
		Timeout: s.listener.cfg.Timeout, Output: c.write, Buffers: &s.buffers, KeyLog: s.listener.cfg.keyLog(),
	})
	if old := s.listener.add(c); old != nil {
		s.have(now, old.shard, func(now time.Time) { old.shard.remove(now, old) })
	}
	s.settle(now, c)
}

// newID returns an id that no session has. It is part of a handshake.
func (s *shard) newID() uint64 {
	for {
		if id := randomID(); s.listener.byID(id) == nil {
			return id
		}
	}
}

// admit looks whether a connection has just opened, and reports whether the handler may hear of it. It takes the
// place of one of the same client: the handler hears of the end of that one before it, or another shard's
// handler, hears of the new one.
func (s *shard) admit(now time.Time, c *Conn, state session.State) bool {
	if c.life != unborn || state == session.Connecting || c.admitted {
		return !c.waits
	}
	old, ok := s.listener.open(c)
	if !ok {
		return false // a newer handshake of the client has taken its place
	}
	c.admitted = true
	if old != nil {
		old.replace()
		c.waits = true
		s.have(now, old.shard, func(now time.Time) { old.shard.succeed(now, old, c) })
	}
	s.listener.log.Debug("connection opened", "remote", c.RemoteAddr(), "client", c.claims.client)
	return !c.waits
}

// succeed removes a connection of this shard and has its heir, which waits for that, be heard of: not before
// those that it waits for itself are removed.
func (s *shard) succeed(now time.Time, c, heir *Conn) {
	s.remove(now, c)
	c.heir = heir
	if !c.waits {
		s.have(now, heir.shard, func(now time.Time) { heir.shard.follow(now, heir) })
	}
}

// follow has the handler hear of a connection that waited for the end of another one. What came meanwhile of
// the unreliable channel is lost.
func (s *shard) follow(now time.Time, c *Conn) {
	c.waits = false
	if heir := c.heir; heir != nil {
		s.have(now, heir.shard, func(now time.Time) { heir.shard.follow(now, heir) })
		return
	}
	c.deliver(now, received{state: c.state()}, s.handler)
	s.settle(now, c)
}

// locate notes a connection's address, if it has changed, at the shard to which the network takes what comes from
// there. A connection that had the address before can still be found by its id.
func (s *shard) locate(now time.Time, c *Conn, at netip.AddrPort, via *shard) {
	if c.at == at && c.via == via {
		return
	}
	if c.at.IsValid() && c.at != at {
		s.counters.moves.Add(1)
	}
	s.unlocate(now, c)
	c.at, c.via = at, via
	s.have(now, via, func(time.Time) { via.conns.set(at, c) })
}

func (s *shard) unlocate(now time.Time, c *Conn) {
	if !c.at.IsValid() {
		return
	}
	at, via := c.at, c.via
	s.have(now, via, func(time.Time) {
		via.conns.remove(at, c)
	})
}

// refuse answers a hello with a reason that nobody can rely on, if that was not done too often lately.
func (s *shard) refuse(now time.Time, to netip.AddrPort, nonce uint64, reason wire.RefuseReason) {
	if s.mayHint(now) {
		s.send(wire.AppendRefuse(s.out[:0], wire.Refuse{Nonce: nonce, Reason: reason}), to)
	}
}

// remove forgets a connection that is over, and tells the handler. It does nothing the second time.
func (s *shard) remove(now time.Time, c *Conn) {
	if c.life == dead {
		return
	}
	s.timers.remove(c)
	s.unlocate(now, c)
	s.listener.remove(c)
	c.bury(s.handler)
}
