package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	helloInterval = 250 * time.Millisecond // between two hellos
	// maxPending is how long a listener waits for the first numbered datagram of a session.
	maxPending = 5 * time.Second
)

// helloState is what a client knows of its handshake.
type helloState struct {
	count int       // hellos sent
	at    time.Time // of the last one
}

// NewClient returns the session of a client, which sends its first hello at once. The nonce is random
// and never 0.
func NewClient(now time.Time, nonce uint64, cfg Config) *Session {
	s := &Session{cfg: cfg, client: true, nonce: nonce, start: now, heard: now}
	s.sendHello(now)
	return s
}

// NewServer returns the session that a listener grants to the sender of a hello with that nonce, and
// sends its welcome. The id is random and never 0. The session is [Open] when the client has shown,
// by a numbered datagram, that it got the welcome: the sender of a hello may not own its address.
func NewServer(now time.Time, nonce, id uint64, cfg Config) *Session {
	s := &Session{cfg: cfg, nonce: nonce, start: now, heard: now}
	s.begin(id)
	s.sendWelcome()
	return s
}

// Hello answers one more hello with this session's nonce: the welcome was lost, or the hello came twice.
func (s *Session) Hello() {
	if s.state != Closed {
		s.sendWelcome()
	}
}

func (s *Session) sendHello(now time.Time) {
	s.hello.count++
	s.hello.at = now
	b := wire.AppendHeader(s.buf[:0], wire.Header{Kind: wire.HelloKind})
	s.output(wire.AppendHello(b, wire.Hello{Version: wire.Version, Nonce: s.nonce}))
}

func (s *Session) sendWelcome() {
	b := wire.AppendHeader(s.buf[:0], wire.Header{Kind: wire.WelcomeKind, Tag: s.tag})
	s.output(wire.AppendWelcome(b, wire.Welcome{Version: wire.Version, Nonce: s.nonce, Session: s.id}))
}

// inputWelcome takes the answer that a client waits for.
func (s *Session) inputWelcome(now time.Time, body []byte) Verdict {
	w, err := wire.ParseWelcome(body)
	switch {
	case err != nil:
		return Malformed
	case !s.client || s.state != Connecting || w.Nonce != s.nonce:
		return Unexpected
	case w.Version != wire.Version:
		s.end(ErrVersion)
		return Accepted
	}
	s.heard = now
	if s.hello.count == 1 { // else nobody knows which hello it answers
		s.rtt.sample(now.Sub(s.hello.at))
	}
	s.begin(w.Session)
	s.open(now)
	return Accepted
}

// inputRefuse takes the other answer.
func (s *Session) inputRefuse(body []byte) Verdict {
	r, err := wire.ParseRefuse(body)
	switch {
	case err != nil:
		return Malformed
	case !s.client || s.state != Connecting || r.Nonce != s.nonce:
		return Unexpected
	case r.Reason == wire.RefuseFull:
		s.end(ErrServerFull)
	default:
		s.end(ErrVersion)
	}
	return Accepted
}
