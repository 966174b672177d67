package session

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
)

// maxPending is how long a listener waits for the first sealed datagram of a session.
const maxPending = 5 * time.Second

// Grant is what a listener has granted a client.
type Grant struct {
	Remote  netip.AddrPort // which the client has shown to be its own
	Nonce   uint64         // of the hello
	ID      uint64         // random, not 0
	Suite   seal.Suite
	Secrets seal.Secrets
	Welcome []byte // the datagram that says so
}

// NewServer returns the session that a listener grants to the sender of a hello, and sends the welcome. It
// is [Open] when a sealed datagram of the client has been opened: a hello can be a copy.
func NewServer(now time.Time, g Grant, cfg Config) *Session {
	s := &Session{cfg: cfg, nonce: g.Nonce, remote: g.Remote, start: now, heard: now, served: now, welcome: g.Welcome}
	s.begin(g.ID, g.Suite, g.Secrets)
	s.output(s.remote, s.welcome)
	return s
}

// Hello answers the same hello once more, from an address that the client has shown to be its own: the
// welcome was lost, or the hello came twice. It does nothing unless the session is [Connecting].
func (s *Session) Hello(now time.Time, from netip.AddrPort) {
	if s.state == Connecting {
		if s.remote != from { // a copy from elsewhere: the first datagrams will show which is which
			s.remote, s.settled = from, now.Add(settleTime)
		}
		s.output(s.remote, s.welcome)
	}
}
