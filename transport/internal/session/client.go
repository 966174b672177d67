package session

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	helloInterval = 250 * time.Millisecond // between two hellos
	helloPause    = 50 * time.Millisecond  // at least, whatever is answered
	// refusalWait is how long a welcome may still come after a refuse, which anybody on the way can send.
	refusalWait = 2 * helloInterval
)

// Prologue is what both ends of a handshake must agree on: the protocol and [wire.Version].
var Prologue = []byte("uplink 2")

// Ticket is what a client needs to ask for a session.
type Ticket struct {
	Remote    netip.AddrPort // of the listener
	ServerKey [32]byte       // its public key
	Token     []byte         // sealed; of any length that a hello has room for
	Suites    uint8          // bit i: suite i will do
	Nonce     uint64         // random
}

// MaxToken is the size of the largest sealed token in bytes.
const MaxToken = wire.MaxHelloMessage - seal.HandshakeOverhead - 1

// greeting is what a client knows of its handshake.
type greeting struct {
	ticket    Ticket
	initiator *seal.Initiator
	hello     wire.Hello // its message is empty until a retry came
	count     int        // hellos sent since the message is not empty
	at        time.Time  // of the last one
	refusal   error      // what a refuse said
	refused   time.Time  // when to give up for it; zero: not at all
}

// NewClient returns the session of a client, which sends its first hello at once.
func NewClient(now time.Time, t Ticket, cfg Config) *Session {
	s := &Session{cfg: cfg, client: true, long: true, nonce: t.Nonce, remote: t.Remote, start: now, heard: now, served: now}
	s.greeting = &greeting{
		ticket:    t,
		initiator: seal.NewInitiator(cfg.Random, t.ServerKey, Prologue),
		hello:     wire.Hello{Version: wire.Version, Nonce: t.Nonce},
	}
	s.sendHello(now)
	return s
}

func (s *Session) sendHello(now time.Time) {
	g := s.greeting
	g.at = now
	if len(g.hello.Message) > 0 {
		g.count++
	}
	buf := s.cfg.Buffers.get()
	s.output(s.remote, wire.AppendHello(buf[:0], g.hello))
	s.cfg.Buffers.put(buf)
}

// inputHandshake takes a datagram that is not sealed. Of these, only a client gets any.
func (s *Session) inputHandshake(now time.Time, b []byte) Verdict {
	t, err := wire.ParseType(b)
	switch {
	case err != nil:
		return Malformed
	case !s.client:
		return Unexpected
	case t == wire.UnknownType:
		return s.inputUnknown(now, b)
	case s.state != Connecting:
		return Unexpected
	case t == wire.RetryType:
		return s.inputRetry(now, b)
	case t == wire.WelcomeType:
		return s.inputWelcome(now, b)
	case t == wire.RefuseType:
		return s.inputRefuse(now, b)
	}
	return Unexpected
}

// inputRetry takes a cookie. The key exchange's message is made once: the listener knows a hello that it
// got before by it.
func (s *Session) inputRetry(now time.Time, b []byte) Verdict {
	r, err := wire.ParseRetry(b)
	g := s.greeting
	switch {
	case err != nil:
		return Malformed
	case r.Nonce != s.nonce:
		return Unexpected
	}
	g.hello.Cookie = r.Cookie
	if len(g.hello.Message) == 0 {
		offer := wire.AppendOffer(nil, wire.Offer{Suites: g.ticket.Suites, Token: g.ticket.Token})
		if g.hello.Message, err = g.initiator.Hello(nil, offer); err != nil {
			s.end(token.ErrWrongKey)
			return Accepted
		}
		s.sendHello(now)
	} else if !now.Before(g.at.Add(helloPause)) {
		s.sendHello(now)
	}
	return Accepted
}

// inputWelcome takes the answer that a client waits for.
func (s *Session) inputWelcome(now time.Time, b []byte) Verdict {
	w, err := wire.ParseWelcome(b)
	g := s.greeting
	switch {
	case err != nil:
		return Malformed
	case w.Nonce != s.nonce || len(g.hello.Message) == 0:
		return Unexpected
	}
	payload, secrets, err := g.initiator.Welcome(w.Message)
	if err != nil {
		return Unauthenticated
	}
	grant, err := wire.ParseGrant(payload)
	switch {
	case err != nil:
		return Malformed
	case grant.Code != wire.Granted:
		s.end(grantError(grant.Code))
		return Accepted
	case !seal.Suite(grant.Suite).Valid() || g.ticket.Suites>>grant.Suite&1 == 0:
		s.end(ErrNoSuite)
		return Accepted
	}
	s.heard, s.served = now, now
	if g.count == 1 { // else nobody knows which hello it answers
		s.rtt.sample(now.Sub(g.at))
	}
	s.begin(grant.ID, seal.Suite(grant.Suite), secrets)
	s.open(now)
	return Accepted
}

// inputRefuse takes the other answer.
func (s *Session) inputRefuse(now time.Time, b []byte) Verdict {
	r, err := wire.ParseRefuse(b)
	g := s.greeting
	switch {
	case err != nil:
		return Malformed
	case r.Nonce != s.nonce:
		return Unexpected
	case r.Reason == wire.RefuseBusy:
		if g.refusal == nil {
			g.refusal = ErrServerBusy // which may pass
		}
		return Accepted
	}
	if g.refused.IsZero() {
		g.refusal, g.refused = refusalError(r.Reason), now.Add(refusalWait)
	}
	return Accepted
}

// giveUp returns when a client's handshake is over without success.
func (g *greeting) giveUp(deadline time.Time) time.Time {
	if g.refused.IsZero() {
		return deadline
	}
	return earlier(g.refused, deadline)
}

// failure returns why.
func (g *greeting) failure() error {
	if g.refusal != nil {
		return g.refusal
	}
	return ErrTimeout
}
