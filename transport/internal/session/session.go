// Package session is one connection as a state machine: handshake, sealed datagrams and their numbers,
// heartbeats, timeout, moving to another address, the reliable channel, close. It has no socket, no goroutine
// and no clock: datagrams go in through [Session.Input] and out through a function, and each method that
// needs the time is told it. (KCP, below the reliable channel, reads its own clock.)
package session

import (
	"io"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// ipSize is the size of the headers of IPv4 and UDP in bytes.
const ipSize = 20 + 8

// State is where a session is in its life. It only goes up.
type State uint8

// The states of a session.
const (
	// Connecting is a client that waits for its welcome, or a listener's session whose peer has not
	// yet shown that it got one.
	Connecting State = iota
	Open
	Closed
)

// Config is what a session is made with.
type Config struct {
	// Timeout is how long a session lives without an accepted datagram, and how long a client asks
	// for a welcome.
	Timeout time.Duration
	// Output sends a datagram to an address. It is called from inside the session's methods, must not
	// call them, and must not keep the datagram.
	Output func(to netip.AddrPort, datagram []byte)
	// Random is the source of keys and challenges: nil means crypto/rand. It must not fail.
	Random io.Reader
	// Buffers are what datagrams are built in. Sessions may share them.
	Buffers *Buffers
	// KeyLog, if not nil, is told the secrets of the session when it has some.
	KeyLog func(id uint64, suite seal.Suite, secrets seal.Secrets)
}

// Session is one end of a connection. It is not safe for concurrent use.
type Session struct {
	cfg   Config
	state State
	err   error // why it is Closed; nil if this end closed it

	client bool
	long   bool // a client names its session in each datagram
	nonce  uint64
	id     uint64 // 0 until the client is welcome
	remote netip.AddrPort

	start    time.Time     // of this end's heartbeat clock
	heard    time.Time     // when the last datagram was accepted
	served   time.Time     // likewise, but for challenges
	asked    time.Time     // when a client first asked for an answer since served; zero: not yet
	deaf     bool          // see TakeDeaf
	deafWait time.Duration // after which a client that has asked is deaf, if more than deafAfter
	greeting *greeting     // of a client that is not welcome yet
	welcome  []byte        // of a listener's session that is not open yet
	beat     beatState
	doubt    doubtState
	probing  probing
	stay     time.Time // until when a client stays long at least
	rtt      rtt
	answers  ratelimit.Bucket // of [answerRate]

	generation uint8            // of the client's address, as far as this end knows
	responses  ratelimit.Bucket // of a client, of [responseRate]
	validation *validation      // of a listener; nil if the client is where it was
	settled    time.Time        // when the listener's current address is no longer contested

	recv     seal.Window
	opener   seal.Opener  // set together with sealer
	sealer   *seal.Sealer // nil until the client is welcome
	number   uint64       // of the datagram that was accepted last
	next     uint64       // number of the next datagram out
	reliable reliable.Channel

	stats Stats
}

// ID returns the session's id, which is 0 until a client's session is [Open].
func (s *Session) ID() uint64 { return s.id }

// Nonce returns the nonce of the hello that began the session.
func (s *Session) Nonce() uint64 { return s.nonce }

// Remote returns the peer's address, which changes for a listener's session when its client moves.
func (s *Session) Remote() netip.AddrPort { return s.remote }

// State returns where the session is in its life.
func (s *Session) State() State { return s.state }

// Err returns why the session is [Closed]: nil if by [Session.Close], else one of the errors of this
// package, perhaps wrapped.
func (s *Session) Err() error { return s.err }

// RTT returns the smoothed and the last round trip time; both are 0 before the first sample.
func (s *Session) RTT() (smoothed, last time.Duration) { return s.rtt.smoothed, s.rtt.last }

// RoundTrips returns how many round trips were measured.
func (s *Session) RoundTrips() uint64 { return s.rtt.samples }

// Number returns the packet number of the datagram that was accepted last, unwrapped.
func (s *Session) Number() uint64 { return s.number }

// Suite returns how the session is sealed: [seal.None] until the client is welcome.
func (s *Session) Suite() seal.Suite {
	if s.sealer == nil {
		return seal.None
	}
	return s.sealer.Suite()
}

// Stats returns what the session has counted.
func (s *Session) Stats() Stats {
	st := s.stats
	st.Lost, st.LossBursts = s.recv.Lost(), s.recv.Bursts()
	for _, n := range st.Verdicts {
		st.DatagramsReceived += n
	}
	return st
}

// begin sets what both ends know once the session is granted.
func (s *Session) begin(id uint64, suite seal.Suite, secrets seal.Secrets) {
	s.id = id
	if s.cfg.KeyLog != nil {
		s.cfg.KeyLog(id, suite, secrets)
	}
	out, in := secrets.ToClient, secrets.ToServer
	if s.client {
		out, in = in, out
	}
	s.sealer, s.opener = seal.NewSealer(suite, out), *seal.NewOpener(suite, in)
	s.reliable = reliable.New(reliable.Config{
		Conv: uint32(id >> 24), MTU: wire.MaxBody, Overhead: wire.LongSize + suite.Overhead() + ipSize,
		Patience: s.cfg.Timeout, Output: s.sendSegments,
	})
}

// open begins the life proper: both ends send a heartbeat that asks for an answer, which gives them
// the round trip at once, and tells the listener that the welcome arrived.
func (s *Session) open(now time.Time) {
	s.state = Open
	s.greeting, s.welcome = nil, nil
	s.sendHeartbeat(now, true)
}

// end makes the session Closed.
func (s *Session) end(err error) {
	s.state = Closed
	s.err = err
}
