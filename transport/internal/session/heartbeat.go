package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	beatInterval = time.Second
	idleAfter    = 5 * time.Second        // without anything but heartbeats a session is idle
	idleInterval = 9 * time.Second        // between heartbeats then, or six tenths of the timeout if that is less
	askInterval  = 250 * time.Millisecond // between those that nobody answers
	maxEchoAge   = time.Minute            // an echo older than this measures nothing
)

// beatState is what the next heartbeat needs to know.
type beatState struct {
	sent   time.Time // when this end sent its last one
	calm   time.Time // when it sent the last one that something else had come or gone before
	busy   bool      // something else has, since
	peer   uint32    // the peer's clock in its newest one
	peerAt time.Time // when that came; zero: none yet
}

// clock is this end's time in a heartbeat.
func (s *Session) clock(now time.Time) uint32 {
	return uint32(now.Sub(s.start) / time.Microsecond)
}

// rare says that heartbeats are fewer, and ask for an answer: the session was idle when the last one was sent.
func (s *Session) rare() bool { return s.beat.sent.Sub(s.beat.calm) >= idleAfter && !s.searching() }

// nextHeartbeat returns when the next heartbeat is due. Of an idle session's ends the client beats, the other one
// answers, and speaks first only if it hears nothing.
func (s *Session) nextHeartbeat() time.Time {
	switch every := min(idleInterval, s.cfg.Timeout*6/10); {
	case s.doubt.active():
		return s.beat.sent.Add(doubtInterval)
	case !s.asked.IsZero() && s.beat.sent.Sub(s.served) >= beatInterval:
		return s.beat.sent.Add(askInterval)
	case !s.rare():
		return s.beat.sent.Add(beatInterval)
	case s.served.Before(s.beat.sent):
		return s.beat.sent.Add(askInterval)
	case s.client:
		return s.beat.sent.Add(every)
	default:
		return s.beat.sent.Add(every + every/5)
	}
}

func (s *Session) sendHeartbeat(now time.Time, answer bool) {
	h := wire.Heartbeat{Clock: s.clock(now), Answer: answer}
	if hold := now.Sub(s.beat.peerAt) / time.Microsecond; !s.beat.peerAt.IsZero() && hold <= wire.MaxHold {
		h.HasEcho, h.Echo, h.Hold = true, s.beat.peer, uint32(hold)
	}
	if s.beat.busy || s.beat.calm.IsZero() {
		s.beat.calm, s.beat.busy = now, false
	}
	s.beat.sent = now
	if s.client && answer && s.asked.IsZero() {
		s.asked = now
	}
	d := s.draft(wire.HeartbeatKind)
	d.b = wire.AppendHeartbeat(d.b, h)
	s.emit(s.remote, d)
}

// inputHeartbeat takes the peer's. One that came late carries an older clock than is known already, which after a
// long silence cannot be told from a newer one; its echo is as good as any.
func (s *Session) inputHeartbeat(now time.Time, body []byte) error {
	h, err := wire.ParseHeartbeat(body)
	if err != nil {
		return err
	}
	if now.Sub(s.beat.peerAt) > maxEchoAge || int32(h.Clock-s.beat.peer) > 0 {
		s.beat.peer, s.beat.peerAt = h.Clock, now
	}
	if h.HasEcho {
		age := time.Duration(s.clock(now)-h.Echo) * time.Microsecond
		hold := time.Duration(h.Hold) * time.Microsecond
		if hold <= age && age <= maxEchoAge {
			s.rtt.sample(age - hold)
		}
	}
	if h.Answer && s.mayAnswer(now) {
		s.sendHeartbeat(now, false)
	}
	return nil
}
