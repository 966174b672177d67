// Package session implements a connection as a state machine: handshake, encrypted datagrams and
// their packet numbers, heartbeats, timeout, path migration, path size probes, the reliable channel
// and close. It has no socket, goroutine or clock. Datagrams go in through [Session.Input] and out
// through a function, and the time is an argument of each method that needs it. (KCP, which
// implements the reliable channel, reads its own clock.)
package session

import (
	"io"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport/internal/path"
	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// ipSize is the size of the headers of IPv4 and UDP in bytes.
const ipSize = 20 + 8

// Path is the path of a datagram: the addresses of both ends. A datagram that arrives at another
// address of the listener takes another path.
type Path struct {
	Addr netip.AddrPort // of the peer
	// Local is this end's address, if it is known and the socket has several: always the zero value
	// at a client.
	Local netip.Addr
}

// State is the state of a session. It only increases.
type State uint8

// The states of a session.
const (
	// Connecting is the state of a client that waits for its welcome, and of a listener's session
	// until the client has sent an encrypted datagram.
	Connecting State = iota
	Open
	Closed
)

// Config configures a session.
type Config struct {
	// Timeout is the time after which a session ends without an accepted datagram, and after which
	// a client gives up its handshake.
	Timeout time.Duration
	// Hellos is the maximum number of hellos of a client to a listener that has not answered; 0
	// means no limit.
	Hellos int
	// Output sends a datagram. The session's methods call it; it must not call them, and must not
	// retain the datagram.
	Output func(to Path, datagram []byte)
	// Limits bounds the reliable messages that wait; nil means no limit. Sessions may share it.
	Limits *Limits
	// Claim is called when a client receives its first answer, before it sends its token. If it
	// returns false, the session ends with [ErrOvertaken]. Nil permits all.
	Claim func() bool
	// Random is the source of keys, challenges and asks; nil selects crypto/rand. It must not fail.
	Random io.Reader
	// Buffers is the memory in which datagrams are built. Sessions may share it.
	Buffers *Buffers
	// KeyLog, if not nil, is called with the secrets of the session.
	KeyLog func(id uint64, suite seal.Suite, secrets seal.Secrets)
}

// MaxMessage is the maximum size of a reliable message in bytes.
const MaxMessage = reliable.MaxMessage

// Limits are those of [reliable.Limits].
type Limits = reliable.Limits

// NewLimits returns limits of each bytes per session, and of all bytes for all sessions together.
func NewLimits(each, all int) *Limits { return reliable.NewLimits(each, all) }

// Session is one end of a connection. It is not safe for concurrent use.
type Session struct {
	cfg   Config
	state State
	err   error // why it is Closed; nil if this end closed it

	client bool
	long   bool // a client sends long headers
	small  bool // the path is small; see noteSize
	// See TakeSmall.
	foundSmall bool
	largest    uint16 // size of the largest datagram but probes, received since the last heartbeat was sent
	size       uint16 // see Size
	id         uint64 // 0 until a client's session is open
	remote     Path

	start      time.Time        // of the rate limits
	received   time.Time        // when the last datagram was accepted
	served     time.Time        // the same without challenges
	echoed     time.Duration    // last echo of the peer, since the start
	returned   time.Duration    // see [Session.Returned], since the start; 0: never
	handshake  *clientHandshake // of a client until its session is open
	welcome    []byte           // of a listener's session until it is open
	heartbeat  heartbeatState
	lossProbe  time.Time // see [Session.receiveUnknown]
	pathSize   pathSize
	parts      *assembly // of received bodies in parts; nil before the first one
	longUntil  time.Time // until when a client sends long headers at least
	unanswered unansweredState
	path       path.Estimator
	answers    ratelimit.Bucket // of answerRate

	generation     uint8            // of the client's address, as far as this end knows
	responses      ratelimit.Bucket // of responseRate, at a client
	validation     *validation      // of a listener; nil unless there are other addresses than remote
	contestedUntil time.Time        // until when the listener's current address is contested

	window   seal.Window
	opener   seal.Opener  // set together with sealer
	sealer   *seal.Sealer // nil until the keys are known
	number   uint64       // see Number
	next     uint64       // number of the next datagram to send
	reliable reliable.Channel
	bulk     bulk

	stats Stats
}

// ID returns the session's id, which is 0 until a client's session is [Open].
func (s *Session) ID() uint64 { return s.id }

// Remote returns the path to the peer. A path migration changes it.
func (s *Session) Remote() Path { return s.remote }

// Served returns when the last datagram but challenges was accepted.
func (s *Session) Served() time.Time { return s.served }

// Returned returns the time of the last return of the peer: its first datagram after silentAfter
// without one, its path migration, or its first echo after deafAfter without echoes, which shows
// that it receives again. The zero time means never.
func (s *Session) Returned() (t time.Time) {
	if s.returned > 0 {
		t = s.start.Add(s.returned)
	}
	return t
}

// State returns the state of the session.
func (s *Session) State() State { return s.state }

// Err returns why the session is [Closed]: nil after [Session.Close], or one of the errors of this
// package and of package token, possibly wrapped.
func (s *Session) Err() error { return s.err }

// Path returns what this end has measured of the path.
func (s *Session) Path() *path.Estimator { return &s.path }

// Number returns the complete packet number of the last accepted datagram. That of a payload in
// parts is the number of its first part.
func (s *Session) Number() uint64 { return s.number }

// Size returns the size of the last accepted datagram. That of a payload in parts is the size of
// all their datagrams.
func (s *Session) Size() int { return int(s.size) }

// Missing returns the number of packet numbers from first to last that were not received, as far as
// the replay window shows.
func (s *Session) Missing(first, last uint64) int { return s.window.Missing(first, last) }

// Suite returns the suite of the session, [seal.None] until the keys are known.
func (s *Session) Suite() seal.Suite {
	if s.sealer == nil {
		return seal.None
	}
	return s.sealer.Suite()
}

// Verdict is the result of a received datagram.
type Verdict uint8

// The verdicts. Those after Payload are reasons to drop the datagram.
const (
	Accepted        Verdict = iota // nothing to deliver
	Payload                        // with an unreliable payload
	Malformed                      // not a datagram of this protocol
	WrongSession                   // of another session or address
	Unauthenticated                // forged, altered, or of another session
	Duplicate                      // received before
	Late                           // a payload after 64 newer datagrams, or anything after 1,024
	Unexpected                     // of a kind that is invalid in the current state
	Verdicts                       // the number of verdicts
)

// Stats is what a session counts.
type Stats struct {
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64           // including dropped ones
	Lost                             uint64           // datagrams of the peer, not received before 64 newer ones
	LossBursts                       uint64           // runs of lost datagrams
	ProbesSent, ProbeBytes           uint64           // path size probes among the sent datagrams
	PathMigrations                   uint64           // changes of the peer's address
	SmallPaths                       uint64           // how often the path was found to be small
	Verdicts                         [Verdicts]uint64 // by verdict
}

// Lost returns the number of lost datagrams of the peer: not received before 64 newer ones.
func (s *Session) Lost() uint64 { return s.window.Lost() }

// Stats returns what the session has counted.
func (s *Session) Stats() Stats {
	st := s.stats
	st.Lost, st.LossBursts = s.Lost(), s.window.Bursts()
	for _, n := range st.Verdicts {
		st.DatagramsReceived += n
	}
	return st
}

// begin sets the state that both ends share once the handshake is complete.
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
	c := s.channel(s.conversation())
	c.Limits = s.cfg.Limits
	s.reliable = reliable.New(c)
	s.resetPathSize()
}

// conversation returns the conversation number of the reliable channel. That of the bulk channel is
// the next one.
func (s *Session) conversation() uint32 { return uint32(s.id >> 24) }

func (s *Session) channel(conversation uint32) reliable.Config {
	return reliable.Config{
		Conv: conversation, MTU: wire.MaxBody, Overhead: uint16(wire.LongSize + s.Suite().Overhead() + ipSize),
		Patience: s.cfg.Timeout, Output: s.sendSegments,
	}
}

// open opens the session. Both ends send a heartbeat that requests an answer, which measures the
// round-trip time, and shows the listener that the welcome was received.
func (s *Session) open(now time.Time) {
	s.state = Open
	s.handshake, s.welcome = nil, nil
	s.sendHeartbeat(now, true)
}

func (s *Session) end(err error) {
	s.state = Closed
	s.err = err
	s.reliable.Drop()
}
