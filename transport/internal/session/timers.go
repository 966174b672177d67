package session

import (
	"cmp"
	"crypto/rand"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport/internal/path"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	heartbeatInterval = time.Second
	maxClientHold     = 20 * time.Millisecond   // that a listener believes
	idleAfter         = 5 * time.Second         // without anything but heartbeats
	idleInterval      = 9 * time.Second         // between heartbeats of an idle session, at most 60 % of the timeout
	requestInterval   = 250 * time.Millisecond  // between heartbeats while none is answered
	lossProbePeriod   = time.Second             // from the hint to the end of the session
	lossProbeInterval = 250 * time.Millisecond  // between its heartbeats
	lossProbeNumbers  = 256                     // a hint must echo one of the last datagrams
	unansweredAfter   = 2 * time.Second         // a client without an answer rebinds after this time
	maxUnansweredWait = 16 * time.Second        // it doubles up to this
	silentAfter       = time.Second             // without a datagram, for [Session.Returned]
	deafAfter         = 2500 * time.Millisecond // without an echo, for [Session.Returned]; two or three were due
)

// answerRate limits answers to requests of the peer: heartbeats, path size probes, and datagrams
// from new addresses. A conforming peer requests about ten a second at most.
var answerRate = ratelimit.Rate{PerSecond: 20, Burst: 20}

func (s *Session) mayAnswer(now time.Time) bool {
	return s.answers.Take(now.Sub(s.start), answerRate, 1)
}

type heartbeatState struct {
	sent   time.Time // the last one
	calm   time.Time // the last one before which the session was not idle
	busy   bool      // payloads were sent or received since
	peer   uint32    // ask in the peer's last heartbeat; 0: none
	peerAt time.Time // when that was received
}

// idle reports whether heartbeats are less frequent.
func (s *Session) idle() bool {
	return s.heartbeat.sent.Sub(s.heartbeat.calm) >= idleAfter && !s.searching()
}

// nextHeartbeat returns when the next heartbeat is due, apart from answers. The listener requests
// one of the client each second, and in an idle session, the client those of the listener. The
// other end sends one by itself only if it receives none.
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

// sendHeartbeat sends a heartbeat, which requests an answer or not.
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
	s.sendKind(s.remote, wire.HeartbeatKind, wire.AppendHeartbeat(make([]byte, 0, 16), h))
}

// Probe sends a heartbeat that requests an answer.
func (s *Session) Probe(now time.Time) {
	if s.state == Open {
		s.sendHeartbeat(now, true)
	}
}

// receiveHeartbeat measures the round-trip time, and answers if that is requested. A longer hold
// time would make a round trip shorter, so a listener believes only that of a client that answered
// its request, up to the time between two frames of a game. A client believes its listener, whose
// next heartbeat follows within a second or so.
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

// receiveUnknown handles a hint that the listener does not know the session. If it echoes a header
// without the session id, it may only mean that the listener does not know the client's address:
// the client sends long headers from now on. The hint is unauthenticated, so the client requests an
// answer, and the session ends unless a datagram is accepted until lossProbe.
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

// unansweredState is a client's wait for an answer that it requested.
type unansweredState struct {
	since   time.Time     // the first request since the last answer; zero: none
	expired bool          // see [Session.TakeUnanswered]
	wait    time.Duration // if more than unansweredAfter
}

func (u *unansweredState) waiting() bool { return !u.since.IsZero() }

// deadline returns when the client has waited for too long, or the zero time.
func (u *unansweredState) deadline() (at time.Time) {
	if u.waiting() {
		at = u.since.Add(max(unansweredAfter, u.wait))
	}
	return at
}

// expire records that no answer was received. Answers to datagrams from the previous address are
// lost after a rebind, so the next wait is twice as long: it must exceed the round-trip time.
func (u *unansweredState) expire(now time.Time) {
	u.expired, u.since = true, now
	u.wait = min(2*max(unansweredAfter, u.wait), maxUnansweredWait)
}

// TakeUnanswered reports whether a client has waited for an answer for so long that it should try
// another local address. It reports so once for each wait.
func (s *Session) TakeUnanswered() bool {
	expired := s.unanswered.expired
	s.unanswered.expired = false
	return expired && s.state == Open
}

// Unanswered reports whether a client has waited for an answer for too long since the last
// datagram.
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

// due reports whether a time has come. The zero time never comes.
func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earliest returns the earliest of times, but for zero ones.
func earliest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if !o.IsZero() && o.Before(t) {
			t = o
		}
	}
	return t
}
