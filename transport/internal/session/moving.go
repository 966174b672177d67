package session

import (
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// A client's address can change: its router gives it another one, or it changes networks. The client sees no
// more than silence. It then names its session in each datagram, so that the listener can find it whatever
// the address. The listener sends a challenge to an address that is new, and moves there when the answer to
// it comes from there; until then it sends everything else to the old one. So a datagram that somebody has
// copied, and sent first, moves nothing.

const (
	silence       = 300 * time.Millisecond // after which a client names its session
	leastStay     = time.Second            // for which it does so after a hint
	maxPaths      = 4                      // addresses that are being checked
	pathLife      = 3 * time.Second        // of a check
	challengeWait = 50 * time.Millisecond  // between two challenges of a session
)

// path is an address that is being checked.
type path struct {
	addr  netip.AddrPort
	data  [wire.ChallengeSize]byte
	since time.Time
}

// paths are those of a listener's session, oldest first.
type paths struct {
	checks [maxPaths]path
	count  int
	sent   time.Time // the last challenge
}

// of returns the check of an address, a new one if there is none.
func (p *paths) of(now time.Time, addr netip.AddrPort, random io.Reader) *path {
	for i := range p.count {
		if c := &p.checks[i]; c.addr == addr && now.Before(c.since.Add(pathLife)) {
			return c
		}
	}
	if p.count == maxPaths {
		copy(p.checks[:], p.checks[1:])
		p.count--
	}
	c := &p.checks[p.count]
	p.count++
	*c = path{addr: addr, since: now}
	fill(random, c.data[:])
	return c
}

// passed reports whether a response from an address is right.
func (p *paths) passed(now time.Time, addr netip.AddrPort, data [wire.ChallengeSize]byte) bool {
	return p != nil && slices.ContainsFunc(p.checks[:p.count], func(c path) bool {
		return c.addr == addr && c.data == data && now.Before(c.since.Add(pathLife))
	})
}

// locate looks where the newest datagram of all came from. One from the known address ends all checks: who
// moves does not come back in the middle of it.
func (s *Session) locate(now time.Time, from netip.AddrPort) {
	switch {
	case from != s.remote:
		s.challenge(now, from)
	case s.paths != nil:
		s.paths.count = 0
	}
}

// challenge asks whether the client is at an address. It is no longer than the shortest datagram that can be
// the cause.
func (s *Session) challenge(now time.Time, to netip.AddrPort) {
	if s.paths == nil {
		s.paths = &paths{}
	}
	if s.paths.count > 0 && now.Before(s.paths.sent.Add(challengeWait)) || !s.mayAnswer(now) {
		return
	}
	s.paths.sent = now
	c := s.paths.of(now, to, s.cfg.Random)
	d := s.draft(wire.ChallengeKind)
	d.b = append(d.b, c.data[:]...)
	s.emit(to, d)
}

// inputChallenge answers. A client that has reason to believe that it is where it was does not: the address
// would be somebody else's.
func (s *Session) inputChallenge(from netip.AddrPort, body []byte) (Verdict, error) {
	data, err := wire.ParseChallenge(body)
	if err != nil || !s.long {
		return Unexpected, err
	}
	s.probing = probing{} // of another path
	d := s.draft(wire.ResponseKind)
	d.b = append(d.b, data[:]...)
	s.emit(from, d)
	return Accepted, nil
}

// inputResponse moves the session to where the right response came from.
func (s *Session) inputResponse(now time.Time, from netip.AddrPort, body []byte) (Verdict, error) {
	data, err := wire.ParseChallenge(body)
	if err != nil || !s.paths.passed(now, from, data) {
		return Unexpected, err
	}
	s.remote, s.paths = from, nil
	s.stats.Moves++
	s.sendHeartbeat(now, true) // which tells the client that it has been found
	return Accepted, nil
}

// Moved tells a client's session that its own address has changed: it lets the listener know.
func (s *Session) Moved(now time.Time) {
	if s.state == Open {
		s.long = true
		s.probing = probing{}
		s.sendHeartbeat(now, true)
	}
}
