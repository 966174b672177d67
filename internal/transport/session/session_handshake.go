package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
)

const (
	// The time between repeated hellos grows by half each time, within these bounds. It begins with
	// the minimum. After the first retry it is 1.5 times the round-trip time that the retry showed.
	minHelloWait, maxHelloWait = 100 * time.Millisecond, 250 * time.Millisecond
	// refusalWait is the time for which a client still accepts an answer after a refusal or the
	// report that there is no listener, since neither is authenticated.
	refusalWait = 500 * time.Millisecond
	// maxPending is the time for which a listener waits for the first encrypted datagram of a
	// session.
	maxPending = 5 * time.Second
)

// MaxTokenAhead is the maximum time by which the clock that issued a token may be ahead of the
// listener's.
const MaxTokenAhead = time.Minute

// Prologue is the prologue of the key exchange: the protocol and [wire.Version].
var Prologue = []byte("uplink 4")

// MaxToken is the maximum size of an encrypted token in bytes.
const MaxToken = wire.MaxHelloMessage - seal.HandshakeOverhead - 1

// Request is a client's request for a session.
type Request struct {
	Remote    Path        // path to the listener
	ServerKey [32]byte    // the listener's public key
	KeyID     token.KeyID // id of the key that issued Token
	Route     []byte      // route id of the token; at most [wire.MaxRoute] bytes
	Token     []byte      // encrypted; at most [MaxToken] bytes
	Suites    uint8       // bit i: suite i is permitted
	Nonce     uint64      // random
}

type clientHandshake struct {
	request   Request
	initiator *seal.Initiator
	hello     wire.Hello // its message is empty until a retry is received
	count     int        // number of hellos with a message sent
	early     int        // number of hellos without a message sent
	sent      time.Time  // time at which the last hello was sent
	wait      time.Duration
	refusal   error     // reason of a refusal, or of the report of a missing listener
	failAt    time.Time // time at which the handshake fails because of refusal; zero: never
}

// NewClient returns the session of a client, and sends its first hello.
func NewClient(now time.Time, r Request, cfg Config) *Session {
	s := &Session{cfg: cfg, client: true, long: true, remote: r.Remote, start: now, received: now, served: now}
	s.handshake = &clientHandshake{
		request:   r,
		initiator: seal.NewInitiator(cfg.Random, r.ServerKey, Prologue),
		hello:     wire.Hello{Version: wire.Version, Nonce: r.Nonce, Key: r.KeyID, Route: r.Route},
		wait:      minHelloWait,
	}
	s.sendHello(now)
	return s
}

func (s *Session) sendHello(now time.Time) {
	h := s.handshake
	h.sent = now
	if len(h.hello.Message) > 0 {
		h.count++
	} else if h.early++; h.early == s.cfg.Hellos {
		h.wait = s.cfg.Timeout // no further hello unless the listener answers
	}
	buf := s.cfg.Buffers.get()
	s.output(s.remote, wire.AppendHello(buf[:0], h.hello))
	s.cfg.Buffers.pool.Put(buf)
}

// helloWait returns the wait that follows a wait or a round trip of duration d.
func helloWait(d time.Duration) time.Duration { return min(max(d*3/2, minHelloWait), maxHelloWait) }

// receiveHandshake handles an unencrypted datagram. Only clients receive them.
func (s *Session) receiveHandshake(now time.Time, from Path, b []byte) Verdict {
	t, err := wire.ParseType(b)
	switch {
	case s.client && from != s.remote:
		return WrongSession
	case err != nil:
		return Malformed
	case !s.client:
		return Unexpected
	case t == wire.UnknownType:
		return s.receiveUnknown(now, b)
	case s.state != Connecting:
		return Unexpected
	case t == wire.RetryType:
		return s.receiveRetry(now, b)
	case t == wire.WelcomeType:
		return s.receiveWelcome(now, b)
	case t == wire.RefuseType:
		return s.receiveRefuse(now, b)
	}
	return Unexpected
}

// receiveRetry sends a hello with the first cookie that it receives. Later cookies are answers to
// repeated hellos. The message of the key exchange is made once, because the listener recognizes
// repeated hellos by it.
func (s *Session) receiveRetry(now time.Time, b []byte) Verdict {
	r, err := wire.ParseRetry(b)
	h := s.handshake
	switch {
	case err != nil:
		return Malformed
	case r.Nonce != h.hello.Nonce:
		return Unexpected
	}
	h.hello.Cookie = r.Cookie
	if len(h.hello.Message) > 0 {
		return Accepted // answers another hello
	}
	if s.cfg.Claim != nil && !s.cfg.Claim() {
		s.end(ErrOvertaken)
		return Accepted
	}
	s.cfg.Claim = nil // releases the memory that it refers to
	if errors.Is(h.refusal, ErrNoServer) {
		h.refusal, h.failAt = nil, time.Time{} // the listener exists and has answered
	}
	offer := wire.AppendOffer(nil, wire.Offer{Suites: h.request.Suites, Token: h.request.Token})
	if h.hello.Message, err = h.initiator.Hello(nil, offer); err != nil {
		s.end(token.ErrWrongKey)
		return Accepted
	}
	h.wait = helloWait(now.Sub(s.start))
	s.sendHello(now)
	return Accepted
}

// receiveWelcome completes the handshake, or ends the session if the listener refuses it.
func (s *Session) receiveWelcome(now time.Time, b []byte) Verdict {
	w, err := wire.ParseWelcome(b)
	h := s.handshake
	switch {
	case err != nil:
		return Malformed
	case w.Nonce != h.hello.Nonce || len(h.hello.Message) == 0:
		return Unexpected
	}
	payload, secrets, err := h.initiator.Welcome(w.Message)
	if err != nil {
		return Unauthenticated
	}
	grant, err := wire.ParseGrant(payload)
	switch {
	case err != nil:
		return Malformed
	case grant.Code != wire.Granted:
		s.end(GrantError(grant, h.request.Suites))
		return Accepted
	case !seal.Suite(grant.Suite).Valid() || h.request.Suites>>grant.Suite&1 == 0:
		s.end(ErrNoSuite)
		return Accepted
	}
	s.received, s.served = now, now
	if h.count == 1 { // otherwise it is unknown which hello was answered
		s.path.Measured(now.Sub(s.start), now.Sub(h.sent))
	}
	s.begin(grant.ID, seal.Suite(grant.Suite), secrets)
	s.open(now)
	return Accepted
}

// receiveRefuse records an unauthenticated refusal. The handshake continues for refusalWait or, if
// the listener refuses for the time being, until its timeout.
func (s *Session) receiveRefuse(now time.Time, b []byte) Verdict {
	r, err := wire.ParseRefuse(b)
	h := s.handshake
	switch {
	case err != nil:
		return Malformed
	case r.Nonce != h.hello.Nonce:
		return Unexpected
	case r.Reason == wire.RefuseBusy, r.Reason == wire.RefuseStore:
		h.refusal = cmp.Or(h.refusal, Refusal(r.Reason, h.request.KeyID))
	case h.failAt.IsZero():
		h.refusal, h.failAt = Refusal(r.Reason, h.request.KeyID), now.Add(refusalWait)
	}
	return Accepted
}

// Refused records that the network reported that there is no listener. Reports can be forged. So
// they count only before the first answer, and the handshake then continues for refusalWait, unless
// both ends are on this machine.
func (s *Session) Refused(now time.Time, err error) {
	h := s.handshake
	if h == nil || s.state != Connecting || h.refusal != nil || len(h.hello.Message) > 0 {
		return
	}
	h.refusal, h.failAt = fmt.Errorf("%w: %w", ErrNoServer, err), now
	if !s.remote.Addr.Addr().IsLoopback() {
		h.failAt = now.Add(refusalWait)
	}
}

// Refusal returns the reason of an unauthenticated refusal, or of a report of a missing listener,
// that the client received during the handshake. It is nil if there was none.
func (s *Session) Refusal() error {
	if s.handshake == nil {
		return nil
	}
	return s.handshake.refusal
}

// Grant contains the parameters of a session that a listener accepts.
type Grant struct {
	Remote  Path   // validated path to the client
	ID      uint64 // random, not 0
	Suite   seal.Suite
	Secrets seal.Secrets
	Welcome []byte // datagram with the grant
}

// NewServer returns a listener's session, and sends the welcome. The session becomes [Open] when an
// encrypted datagram of the client is accepted, because the hello may be a copy.
func NewServer(now time.Time, g Grant, cfg Config) *Session {
	s := &Session{cfg: cfg, remote: g.Remote, start: now, received: now, served: now, welcome: g.Welcome}
	s.begin(g.ID, g.Suite, g.Secrets)
	s.output(s.remote, s.welcome)
	return s
}

// Hello answers a repeated hello from a validated address, which means that the welcome was lost or
// the hello was duplicated. It does nothing unless the session is [Connecting].
func (s *Session) Hello(now time.Time, from Path) {
	if s.state == Connecting {
		if s.remote != from { // a copy from another address
			s.remote, s.contestedUntil = from, now.Add(contestPeriod)
		}
		s.output(s.remote, s.welcome)
	}
}
