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
func (l *Listener) hello(now time.Time, from netip.AddrPort, b []byte) {
	hello, err := wire.ParseHello(b)
	switch {
	case err != nil:
		l.count(session.Malformed)
	case hello.Version != wire.Version:
		l.counters.version.Add(1)
		l.refuse(now, from, hello.Nonce, wire.RefuseVersion)
	case !l.gate.Knows(now, from, hello):
		if hello.Cookie != [wire.CookieSize]byte{} {
			l.counters.cookie.Add(1)
		}
		l.send(wire.AppendRetry(l.out[:0], l.gate.Retry(now, from, hello)), from)
	case len(hello.Message) == 0:
		l.count(session.Malformed)
	default:
		l.handshake(now, from, hello)
	}
}

// handshake takes a hello whose sender owns its address.
func (l *Listener) handshake(now time.Time, from netip.AddrPort, hello wire.Hello) {
	if c := l.pending[gate.HashOf(hello.Message)]; c != nil {
		c.hello(from)
		return
	}
	if !l.mayWait(from.Addr()) || !l.gate.Admit(now, from) {
		l.counters.limited.Add(1)
		l.refuse(now, from, hello.Nonce, wire.RefuseBusy)
		return
	}
	guest, err := l.gate.Read(now, hello)
	switch {
	case err == nil:
		l.welcome(now, from, hello, guest)
	case errors.Is(err, gate.ErrRepeated):
		l.count(session.Duplicate)
	case errors.Is(err, gate.ErrBusy):
		l.counters.limited.Add(1)
		l.refuse(now, from, hello.Nonce, wire.RefuseBusy)
	default:
		l.count(session.Unauthenticated)
		l.refuse(now, from, hello.Nonce, wire.RefuseKey)
	}
}

// mayWait reports whether one more handshake with that address may be pending. Half of the places are for
// networks that have none, so that those who do not end theirs leave some for others.
func (l *Listener) mayWait(from netip.Addr) bool {
	switch n := len(l.pending); {
	case n < (l.cfg.MaxPending+1)/2:
		return true
	case n >= l.cfg.MaxPending:
		return false
	case from.IsLoopback():
		return true
	}
	for _, c := range l.pending {
		if gate.SameNetwork(from, c.RemoteAddr().Addr()) {
			return false
		}
	}
	return true
}

// welcome answers a guest, and gives it a session if it is to have one.
func (l *Listener) welcome(now time.Time, from netip.AddrPort, hello wire.Hello, guest *gate.Guest) {
	if guest.Code == wire.Granted && !l.room(guest.Claims.ClientID) {
		guest.Code = wire.ServerFull
	}
	id := l.newID()
	welcome, secrets, err := l.gate.Answer(guest, id)
	switch {
	case err != nil:
		l.count(session.Unauthenticated)
	case guest.Code != wire.Granted:
		l.log.Debug("connection refused", "remote", from, "code", guest.Code)
		l.refused(guest.Code)
		l.send(welcome, from)
	default:
		l.accept(now, guest, session.Grant{
			Remote: from, Nonce: hello.Nonce, ID: id, Suite: guest.Suite, Secrets: secrets, Welcome: welcome,
		})
	}
}

// room reports whether a client may connect: it may always take its own place.
func (l *Listener) room(client uint64) bool {
	return len(l.ids) < l.cfg.MaxConns || l.clients[client] != nil || l.guests[client] != nil
}

// refused counts a hello by what it was told.
func (l *Listener) refused(code wire.Code) {
	switch code {
	case wire.ServerFull:
		l.counters.full.Add(1)
	case wire.NoSuite:
		l.counters.suite.Add(1)
	default:
		l.counters.token.Add(1)
	}
}

// accept makes a session. It takes the place of one of the same client that is pending.
func (l *Listener) accept(now time.Time, guest *gate.Guest, g session.Grant) {
	c := &Conn{
		owner: l, pc: l.pc, outbox: &l.outbox, all: &l.counters.trips, hash: guest.Hash,
		claims: claims{client: guest.Claims.ClientID, data: bytes.Clone(guest.Claims.UserData)},
	}
	if old := l.guests[c.claims.client]; old != nil {
		l.remove(old)
	}
	c.session = session.NewServer(now, g, session.Config{
		Timeout: l.cfg.Timeout, Output: c.write, Buffers: &l.buffers,
	})
	l.ids[g.ID] = c
	l.pending[c.hash] = c
	l.guests[c.claims.client] = c
	l.recount()
	l.settle(c)
}

// newID returns an id that no session has.
func (l *Listener) newID() uint64 {
	for {
		if id := randomID(); l.ids[id] == nil {
			return id
		}
	}
}

// admit looks whether a connection has just opened. It takes the place of one of the same client: the handler
// hears of the end of that one before it hears of the new one.
func (l *Listener) admit(c *Conn, state session.State) {
	if state == session.Connecting || c.life != unborn || l.pending[c.hash] != c {
		return
	}
	l.born(c)
	if old := l.clients[c.claims.client]; old != nil {
		old.replace()
		l.remove(old)
	}
	l.clients[c.claims.client] = c
	l.counters.open.Add(1)
	l.log.Debug("connection opened", "remote", c.RemoteAddr(), "client", c.claims.client)
}

// born takes c out of those that are pending.
func (l *Listener) born(c *Conn) {
	if l.pending[c.hash] == c {
		delete(l.pending, c.hash)
		delete(l.guests, c.claims.client)
	}
}

// locate notes a connection's address, if it has changed. A connection that had the address before can
// still be found by its id.
func (l *Listener) locate(c *Conn, at netip.AddrPort) {
	if c.at == at {
		return
	}
	if c.at.IsValid() {
		l.counters.moves.Add(1)
	}
	l.unlocate(c)
	l.conns[at] = c
	c.at = at
}

func (l *Listener) unlocate(c *Conn) {
	if l.conns[c.at] == c {
		delete(l.conns, c.at)
	}
}

// refuse answers a hello with a reason that nobody can rely on, if that was not done too often lately.
func (l *Listener) refuse(now time.Time, to netip.AddrPort, nonce uint64, reason wire.RefuseReason) {
	if l.mayHint(now) {
		l.send(wire.AppendRefuse(l.out[:0], wire.Refuse{Nonce: nonce, Reason: reason}), to)
	}
}

// remove forgets a connection that is over, and tells the handler.
func (l *Listener) remove(c *Conn) {
	l.timers.remove(c)
	l.born(c)
	l.unlocate(c)
	id := c.ID()
	if l.ids[id] == c {
		delete(l.ids, id)
	}
	if l.clients[c.claims.client] == c {
		delete(l.clients, c.claims.client)
		l.counters.open.Add(-1)
	}
	l.recount()
	c.bury(l.handler)
}

func (l *Listener) recount() { l.counters.conns.Store(int64(len(l.ids))) }
