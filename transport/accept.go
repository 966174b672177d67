package transport

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// A hello makes a session at once, but its sender may not own the address that it came from. So the
// session is not open, and the handler does not hear of it, until a numbered datagram shows that the
// welcome arrived. If the address has a session already, the new one is only a candidate until
// then, and the old one lives on: one forged hello cannot end a session.

// hello takes a hello from anybody.
func (l *Listener) hello(now time.Time, from netip.AddrPort, body []byte) {
	hello, err := wire.ParseHello(body)
	if err != nil {
		l.count(session.Malformed)
		return
	}
	live, candidate := l.conns[from], l.candidates[from]
	switch {
	case hello.Version != wire.Version:
		l.counters.version.Add(1)
		l.refuse(from, hello.Nonce, wire.RefuseVersion)
	case live != nil && live.session.Nonce() == hello.Nonce:
		live.hello()
	case candidate != nil && candidate.session.Nonce() == hello.Nonce:
		candidate.hello()
	case live != nil && live.former == hello.Nonce:
		l.count(session.Late) // of a session that this one replaced
	case live == nil && len(l.conns) >= l.cfg.MaxConns && !l.evict():
		l.counters.full.Add(1)
		l.refuse(from, hello.Nonce, wire.RefuseFull)
	default:
		l.accept(now, from, hello.Nonce)
	}
}

// evict makes room for one more connection, at the cost of the one that has been waiting longest for its
// handshake to end, if there is one: hellos with forged addresses must not keep others out.
func (l *Listener) evict() bool {
	oldest := l.unborn.Front()
	if oldest == nil {
		return false
	}
	l.counters.full.Add(1)
	l.remove(oldest.Value.(*Conn))
	return true
}

// accept grants a session.
func (l *Listener) accept(now time.Time, from netip.AddrPort, nonce uint64) {
	c := &Conn{owner: l, pc: l.pc, remote: from, sent: &l.counters.sent, all: &l.counters.trips}
	id := randomID()
	live := l.conns[from]
	if live != nil && live.life == unborn {
		l.remove(live)
		live = l.conns[from]
	}
	if live == nil {
		l.conns[from] = c
		c.waiting = l.unborn.PushBack(c)
	} else {
		if candidate := l.candidates[from]; candidate != nil {
			l.remove(candidate)
		}
		for wire.TagOf(id) == live.session.Tag() { // the tag tells the two apart
			id = randomID()
		}
		c.former = live.session.Nonce()
		l.candidates[from] = c
	}
	cfg := session.Config{Timeout: l.cfg.Timeout, Output: c.write}
	c.session = session.NewServer(now, nonce, id, cfg)
	l.recount()
	l.settle(c)
}

// admit looks whether a connection has just opened. A candidate then takes the place of its address's
// connection; the handler hears of the end of that one before it hears of the new one.
func (l *Listener) admit(c *Conn, state session.State) {
	if state != session.Open || c.life != unborn {
		return
	}
	l.log.Debug("connection opened", "remote", c.remote)
	if l.candidates[c.remote] == c {
		old := l.conns[c.remote]
		old.replace()
		l.remove(old) // makes c the connection
	}
	l.born(c)
	l.counters.open.Add(1)
}

// born takes c out of those whose handshake is not over.
func (l *Listener) born(c *Conn) {
	if c.waiting != nil {
		l.unborn.Remove(c.waiting)
		c.waiting = nil
	}
}

// refuse answers a hello with a reason.
func (l *Listener) refuse(to netip.AddrPort, nonce uint64, reason wire.RefuseReason) {
	l.log.Debug("connection refused", "remote", to, "reason", reason)
	b := wire.AppendHeader(l.out[:0], wire.Header{Kind: wire.RefuseKind})
	l.send(wire.AppendRefuse(b, wire.Refuse{Nonce: nonce, Reason: reason}), to)
}

// remove forgets a connection that is over, and tells the handler. A candidate for its place gets it.
func (l *Listener) remove(c *Conn) {
	l.timers.remove(c)
	l.born(c)
	if c.life == alive {
		l.counters.open.Add(-1)
	}
	candidate := l.candidates[c.remote]
	if candidate != nil {
		delete(l.candidates, c.remote)
	}
	switch {
	case candidate == c:
	case candidate != nil:
		l.conns[c.remote] = candidate
		candidate.waiting = l.unborn.PushBack(candidate)
	default:
		delete(l.conns, c.remote)
	}
	l.recount()
	c.bury(l.handler)
}

func (l *Listener) recount() {
	l.counters.conns.Store(int64(len(l.conns) + len(l.candidates)))
}

// randomID returns a random number that is not 0, for session ids and nonces.
func randomID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}
