// Package session implements a connection as a state machine: handshake, encrypted datagrams and
// their packet numbers, heartbeats, timeout, path migration, path size probes, the reliable channel
// and close. It has no socket, goroutine or clock. Datagrams go in through [Session.Input] and out
// through a function, and the time is an argument of each method that needs it. (KCP, which
// implements the reliable channel, reads its own clock.)
package session

import (
	"cmp"
	"crypto/rand"
	"io"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/path"
	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// ipSize is the size of the headers of IPv4 and UDP in bytes.
const ipSize = 20 + 8

// Path is the path of a datagram: the addresses of both ends. Datagrams that arrive at different
// addresses of the listener take different paths.
type Path struct {
	Addr netip.AddrPort // address of the peer
	// Local is this end's address, if it is known and the socket has several. It is always the zero
	// value at a client.
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
	// Timeout is the time without an accepted datagram after which a session ends, and the maximum
	// time of a client's handshake.
	Timeout time.Duration
	// Hellos is the maximum number of hellos of a client to a listener that has not answered; 0
	// means no limit.
	Hellos int
	// Output sends a datagram. The session's methods call it; it must not call them, and must not
	// retain the datagram.
	Output func(to Path, datagram []byte)
	// Limits bounds the queued reliable messages; nil means no limit. Sessions may share it.
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

// Limits is [reliable.Limits].
type Limits = reliable.Limits

// NewLimits returns limits in bytes: each for one session, all for all sessions together.
func NewLimits(each, all int) *Limits { return reliable.NewLimits(each, all) }

// Session is one end of a connection. It is not safe for concurrent use.
type Session struct {
	cfg   Config
	state State
	err   error // reason why the session is Closed; nil if this end closed it

	client bool
	long   bool // whether a client sends long headers
	small  bool // whether the path is small; see noteSize
	// foundSmall is reported by TakeSmall.
	foundSmall bool
	largest    uint16 // size of the largest datagram received since the last heartbeat was sent, not counting probes
	size       uint16 // see Size
	id         uint64 // 0 until a client's session is open
	remote     Path

	start      time.Time        // origin of the rate limits' clock
	received   time.Time        // time at which the last datagram was accepted
	served     time.Time        // time at which the last datagram other than a challenge was accepted
	echoed     time.Duration    // last echo of the peer, since start
	returned   time.Duration    // last return of the peer, since start, see [Session.Returned]; 0: never
	handshake  *clientHandshake // set at a client until its session is open
	welcome    []byte           // set at a listener until its session is open
	heartbeat  heartbeatState
	lossProbe  time.Time // see [Session.receiveUnknown]
	pathSize   pathSize
	parts      *assembly // parts of received bodies; nil before the first part
	longUntil  time.Time // minimum time until which a client sends long headers
	unanswered unansweredState
	path       path.Path
	answers    ratelimit.Bucket // bucket of answerRate

	generation     uint8            // generation of the client's address, as far as this end knows
	responses      ratelimit.Bucket // bucket of responseRate, at a client
	validation     *validation      // set at a listener while datagrams arrive from addresses other than remote
	contestedUntil time.Time        // end of the time for which the listener's current address is contested

	window   seal.Window
	opener   seal.Opener  // set together with sealer
	sealer   *seal.Sealer // nil until the keys are known
	number   uint64       // packet number of the last accepted datagram
	next     uint64       // number of the next datagram to send
	reliable reliable.Channel
	bulk     bulk
	// streaming is set while the bulk channel sends.
	streaming bool

	stats Stats
}

// ID returns the session's id, which is 0 until a client's session is [Open].
func (s *Session) ID() uint64 { return s.id }

// Remote returns the path to the peer. A path migration changes it.
func (s *Session) Remote() Path { return s.remote }

// Served returns when the last datagram other than a challenge was accepted.
func (s *Session) Served() time.Time { return s.served }

// Returned returns when the peer last became reachable again. This is the time of its first
// datagram after silentAfter without datagrams, of its path migration, or of its first echo after
// deafAfter without echoes. The zero time means never.
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

// Path returns the measurements of the path at this end.
func (s *Session) Path() *path.Path { return &s.path }

// Number returns the complete packet number of the last accepted datagram. For a payload in parts,
// it is the number of the first part.
func (s *Session) Number() uint64 { return s.number }

// Size returns the size of the last accepted datagram. For a payload in parts, it is the total size
// of their datagrams.
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
	Payload                        // an unreliable payload
	Malformed                      // not a datagram of this protocol
	WrongSession                   // belongs to another session or address
	Unauthenticated                // forged, altered, or of another session
	Duplicate                      // received before
	Late                           // a payload after 64 newer datagrams, or any datagram after 1,024
	Unexpected                     // kind is invalid in the current state
	Verdicts                       // the number of verdicts
)

// Stats contains the counters of a session.
type Stats struct {
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64           // including dropped datagrams
	Lost                             uint64           // datagrams of the peer that were not received before 64 newer ones
	LossBursts                       uint64           // runs of lost datagrams
	ProbesSent, ProbeBytes           uint64           // path size probes among the sent datagrams
	PathMigrations                   uint64           // changes of the peer's address
	SmallPaths                       uint64           // number of times that the path was found to be small
	Verdicts                         [Verdicts]uint64 // by verdict
}

// Lost returns the number of lost datagrams of the peer: not received before 64 newer ones.
func (s *Session) Lost() uint64 { return s.window.Lost() }

// Stats returns the counters.
func (s *Session) Stats() Stats {
	st := s.stats
	st.Lost, st.LossBursts = s.Lost(), s.window.Bursts()
	for _, n := range st.Verdicts {
		st.DatagramsReceived += n
	}
	return st
}

// begin sets the state that both ends have once the handshake is complete.
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
	c := s.channel(s.conversation(), s.sendSegments)
	c.Limits = s.cfg.Limits
	s.reliable = reliable.New(c)
	s.resetPathSize()
}

// conversation returns the conversation number of the reliable channel. The bulk channel has the
// next number.
func (s *Session) conversation() uint32 { return uint32(s.id >> 24) }

func (s *Session) channel(conversation uint32, output func(time.Time, []byte)) reliable.Config {
	return reliable.Config{
		Conv: conversation, MTU: wire.MaxBody, Overhead: uint16(wire.LongSize + s.Suite().Overhead() + ipSize),
		Patience: s.cfg.Timeout, Output: output,
	}
}

// flightTime is the time in addition to 1.5 round trips for which streams may send without
// acknowledgments.
const flightTime = 100 * time.Millisecond

// streamRoom returns how many bytes streams may send now, how many they may have in flight, and the
// rate of the path in bytes/s.
func (s *Session) streamRoom(now time.Time) (room, flight, rate float64) {
	rate = s.path.Rate()
	return s.path.StreamRoom(now.Sub(s.start)), rate * (s.path.RTT()*3/2 + flightTime).Seconds(), rate
}

// MayWorlds reports whether the path has room for a message of a world now.
func (s *Session) MayWorlds(now time.Time) bool { return s.path.MayWorlds(now.Sub(s.start)) }

// open opens the session. Both ends send a heartbeat that requests an answer. It measures the
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

// bulk is the bulk channel of a session, a second reliable channel. It is created when one end uses
// it for the first time.
type bulk struct {
	rate    float64
	source  func([]byte, int) []byte
	channel *reliable.Channel
}

// SetBulk sets the source of the messages of the bulk channel and its rate limit in bytes per
// second; see [reliable.Channel.SetBulk].
func (s *Session) SetBulk(rate float64, source func([]byte, int) []byte) {
	s.bulk.rate, s.bulk.source = rate, source
	if s.bulk.channel != nil { // the datagram that opened the session also contained bulk segments
		s.bulk.channel.SetBulk(rate, source)
	}
}

// WakeBulk makes the bulk channel send messages of its source.
func (s *Session) WakeBulk(now time.Time) {
	if s.state == Open {
		s.openBulk().Wake(now)
		s.endIfExhausted()
	}
}

// ReceiveBulk is Receive for messages of the bulk channel.
func (s *Session) ReceiveBulk(now time.Time, dst []byte) ([]byte, bool) {
	if s.bulk.channel == nil {
		return dst, false
	}
	return s.receive(s.bulk.channel, now, dst)
}

// channelOf returns the channel to which received segments belong.
func (s *Session) channelOf(segments []byte) *reliable.Channel {
	if reliable.Conversation(segments) == s.conversation()+1 {
		return s.openBulk()
	}
	return &s.reliable
}

func (s *Session) openBulk() *reliable.Channel {
	if s.bulk.channel == nil {
		cfg := s.channel(s.conversation()+1, s.sendStreams)
		cfg.Room = s.streamRoom
		c := reliable.New(cfg)
		if s.bulk.source != nil {
			c.SetBulk(s.bulk.rate, s.bulk.source)
		}
		s.bulk.channel = &c
	}
	return s.bulk.channel
}

// closeError returns the reason for a peer's close code. A client can only quit, or report that the
// listener violated the protocol.
func (s *Session) closeError(code wire.CloseCode) error {
	for _, c := range closeErrors {
		if c.code == code && code != wire.CloseNormal && (s.client || code == wire.CloseProtocol) {
			return c.err
		}
	}
	if s.client {
		return ErrKicked
	}
	return ErrQuit
}

const (
	heartbeatInterval = time.Second
	maxClientHold     = 20 * time.Millisecond  // maximum hold time that a listener accepts from a client
	idleAfter         = 5 * time.Second        // time with nothing but heartbeats until a session is idle
	idleInterval      = 9 * time.Second        // between heartbeats of an idle session, at most 60 % of the timeout
	requestInterval   = 250 * time.Millisecond // between heartbeats while none is answered
	lossProbePeriod   = time.Second            // time from the hint to the end of the session
	lossProbeInterval = 250 * time.Millisecond // between heartbeats in that period
	lossProbeNumbers  = 256                    // a hint must echo a datagram at most this many numbers old
	unansweredAfter   = 2 * time.Second        // first time without an answer after which a client rebinds
	maxUnansweredWait = 16 * time.Second       // the time doubles up to this
	silentAfter       = time.Second            // minimum time without a datagram, for [Session.Returned]
	// deafAfter is the minimum time without an echo for [Session.Returned]: two or three were due.
	deafAfter = 2500 * time.Millisecond
)

// answerRate limits answers to requests of the peer: heartbeats, path size probes, and datagrams
// from new addresses. A conforming peer requests about ten a second at most.
var answerRate = ratelimit.Rate{PerSecond: 20, Burst: 20}

func (s *Session) mayAnswer(now time.Time) bool {
	return s.answers.Take(now.Sub(s.start), answerRate, 1)
}

type heartbeatState struct {
	sent   time.Time // last heartbeat
	calm   time.Time // last heartbeat before which payloads were sent or received
	busy   bool      // payloads were sent or received since the last heartbeat
	peer   uint32    // ask in the peer's last heartbeat; 0: none
	peerAt time.Time // arrival of the peer's last heartbeat
}

// idle reports whether the session is idle: it sends heartbeats less often.
func (s *Session) idle() bool {
	return s.heartbeat.sent.Sub(s.heartbeat.calm) >= idleAfter && !s.searching()
}

// nextHeartbeat returns when the next unsolicited heartbeat is due. Normally the listener requests
// a heartbeat of the client each second; in an idle session, the client requests those of the
// listener. The other end's interval is longer, so it sends one itself only if no request arrives.
func (s *Session) nextHeartbeat() time.Time {
	every := heartbeatInterval
	switch {
	case !s.lossProbe.IsZero():
		return s.heartbeat.sent.Add(lossProbeInterval)
	case s.unanswered.waiting() && s.heartbeat.sent.Sub(s.served) >= heartbeatInterval, s.idle() && s.served.Before(s.heartbeat.sent):
		return s.heartbeat.sent.Add(requestInterval)
	case s.idle():
		if every = min(idleInterval, s.cfg.Timeout*6/10); !s.client {
			every += every / 5
		}
	case s.client:
		every += every / 2
	}
	return s.heartbeat.sent.Add(every)
}

// sendHeartbeat sends a heartbeat. request reports whether it requests an answer.
func (s *Session) sendHeartbeat(now time.Time, request bool) {
	b := &s.heartbeat
	h := wire.Heartbeat{
		Ask: s.path.Ask(now.Sub(s.start), cmp.Or(s.cfg.Random, rand.Reader)), Answer: request, Largest: wire.Excess(int(s.largest)),
	}
	s.largest = 0
	if p := s.parts; p != nil && !p.used {
		s.parts = nil
	} else if p != nil {
		p.used = false
	}
	if hold := now.Sub(b.peerAt) / time.Microsecond; b.peer != 0 && hold <= wire.MaxHold {
		h.Echo, h.Hold = b.peer, uint32(hold)
	}
	if b.busy || b.calm.IsZero() {
		b.calm, b.busy = now, false
	}
	b.sent = now
	if s.client && request && !s.unanswered.waiting() {
		s.unanswered.since = now
	}
	s.sendKind(now, s.remote, wire.HeartbeatKind, wire.AppendHeartbeat(make([]byte, 0, 16), h))
}

// Probe sends a heartbeat that requests an answer.
func (s *Session) Probe(now time.Time) {
	if s.state == Open {
		s.sendHeartbeat(now, true)
	}
}

// receiveHeartbeat measures the round-trip time, and answers if the heartbeat requests it. A false
// hold time would shorten the measured round trip. So a listener accepts a hold time only from a
// client that answers its request, up to the time between two frames of a game. A client trusts its
// listener, whose next heartbeat may follow as late as about a second.
func (s *Session) receiveHeartbeat(now time.Time, body []byte) error {
	h, err := wire.ParseHeartbeat(body)
	if err != nil {
		return err
	}
	maxHold := maxClientHold
	if s.client {
		maxHold = path.MaxAge
	}
	if hold := time.Duration(h.Hold) * time.Microsecond; hold <= maxHold {
		if s.path.Echoed(now.Sub(s.start), h.Echo, hold) {
			at := now.Sub(s.start)
			if at-s.echoed >= deafAfter {
				s.returned = at
			}
			s.echoed = at
		}
	}
	s.heartbeat.peer, s.heartbeat.peerAt = h.Ask, now
	s.receiveReport(now, h.Largest)
	if h.Answer && s.mayAnswer(now) {
		s.sendHeartbeat(now, false)
		s.probePathSize(now)
	}
	return nil
}

// receiveUnknown handles a hint that the listener does not know the session. If the hint echoes a
// header without session id, the listener may know the session but not the client's address, so the
// client sends long headers from now on. The hint is unauthenticated. The client therefore requests
// an answer, and the session ends if no datagram is accepted before lossProbe.
func (s *Session) receiveUnknown(now time.Time, b []byte) Verdict {
	u, err := wire.ParseUnknown(b)
	switch {
	case err != nil:
		return Malformed
	case s.state != Open || !s.sentRecently(u.Echo):
		return Unexpected
	case !u.Echo.Long:
		known := s.long
		s.useLongHeaders(now.Add(minLongPeriod))
		if !known {
			s.sendHeartbeat(now, true)
		}
	case s.lossProbe.IsZero():
		s.lossProbe = now.Add(lossProbePeriod)
		s.sendHeartbeat(now, true)
	}
	return Accepted
}

// sentRecently reports whether h can be the header of one of the last datagrams that this end sent.
func (s *Session) sentRecently(h wire.Header) bool {
	age := (uint32(s.next) - h.Number) & (1<<h.NumberBits() - 1) // 1 for the newest
	return (!h.Long || h.ID == s.id) && age >= 1 && age <= lossProbeNumbers && uint64(age) <= s.next
}

// unansweredState is the state of a client that has requested an answer.
type unansweredState struct {
	since   time.Time     // first request since the last answer; zero: none
	expired bool          // see [Session.TakeUnanswered]
	wait    time.Duration // current limit, if more than unansweredAfter
}

func (u *unansweredState) waiting() bool { return !u.since.IsZero() }

// deadline returns when the wait for an answer expires, or the zero time if there is none.
func (u *unansweredState) deadline() (at time.Time) {
	if u.waiting() {
		at = u.since.Add(max(unansweredAfter, u.wait))
	}
	return at
}

// expire records that no answer was received. After a rebind, answers to the previous address are
// lost. So the next wait is twice as long, until it exceeds the round-trip time.
func (u *unansweredState) expire(now time.Time) {
	u.expired, u.since = true, now
	u.wait = min(2*max(unansweredAfter, u.wait), maxUnansweredWait)
}

// TakeUnanswered reports, once for each wait, that a client has waited too long for an answer and
// should try another local address.
func (s *Session) TakeUnanswered() bool {
	expired := s.unanswered.expired
	s.unanswered.expired = false
	return expired && s.state == Open
}

// Unanswered reports whether a wait for an answer has expired since the last accepted datagram.
func (s *Session) Unanswered() bool { return s.unanswered.wait > 0 && s.state == Open }

// Advance handles timers that are due: hellos, heartbeats, reliable segments, timeouts. It may be
// called at any time; [Session.Next] returns when it is necessary.
func (s *Session) Advance(now time.Time) {
	h := s.handshake // nil unless this is a client's session and Connecting
	switch {
	case s.state == Closed:
	case due(now, s.deadline()) && h != nil:
		s.end(cmp.Or(h.refusal, ErrTimeout))
	case due(now, s.deadline()):
		s.end(ErrTimeout)
	case due(now, s.lossProbe):
		s.end(ErrUnknown)
	case s.state == Open:
		s.advanceOpen(now)
	case h != nil && due(now, h.sent.Add(h.wait)):
		h.wait = helloWait(h.wait)
		s.sendHello(now)
	}
}

func (s *Session) advanceOpen(now time.Time) {
	if s.client && due(now, s.served.Add(silence)) {
		s.useLongHeaders(now)
	}
	if due(now, s.unanswered.deadline()) {
		s.unanswered.expire(now)
	}
	if due(now, s.nextHeartbeat()) {
		s.sendHeartbeat(now, true)
		s.probePathSize(now)
	}
	if s.validation != nil && due(now, s.validation.next) {
		s.challengeAll(now)
	}
	s.reliable.Advance(now)
	if c := s.bulk.channel; c != nil {
		c.Advance(now)
	}
	if at, ok := s.path.Deadline(); ok && !s.long && due(now, s.start.Add(at)) {
		s.sendReport(now, nil)
	}
	s.endIfExhausted()
}

// Next returns when to call [Session.Advance] next. Input and SendReliable may move it to an
// earlier time. For a [Closed] session it is the zero time.
func (s *Session) Next() time.Time {
	switch {
	case s.state == Closed:
		return time.Time{}
	case s.handshake != nil:
		return earliest(s.deadline(), s.handshake.sent.Add(s.handshake.wait))
	case s.state == Connecting:
		return s.deadline()
	}
	t := earliest(s.deadline(), s.nextHeartbeat(), s.lossProbe, s.unanswered.deadline())
	if s.client && !s.long {
		t = earliest(t, s.served.Add(silence))
	}
	if s.validation != nil {
		t = earliest(t, s.validation.next)
	}
	if at, ok := s.path.Deadline(); ok && !s.long {
		t = earliest(t, s.start.Add(at))
	}
	if flush, ok := s.reliable.Next(); ok {
		t = earliest(t, flush)
	}
	if c := s.bulk.channel; c != nil {
		if flush, ok := c.Next(); ok {
			t = earliest(t, flush)
		}
	}
	return t
}

// deadline returns when the session ends if nothing is received until then.
func (s *Session) deadline() time.Time {
	t := s.received.Add(s.cfg.Timeout)
	switch {
	case s.handshake != nil:
		return earliest(t, s.handshake.failAt)
	case s.state == Connecting:
		return earliest(t, s.received.Add(maxPending))
	}
	return t
}

// due reports whether the time at has been reached. The zero time is never due.
func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earliest returns the earliest of the times that are not zero.
func earliest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if !o.IsZero() && o.Before(t) {
			t = o
		}
	}
	return t
}
