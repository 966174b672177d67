package session

import "time"

// Advance does what is due at now: hellos, heartbeats, the reliable channel's segments, giving up.
// It may be called at any time; [Session.Next] tells when it has something to do.
func (s *Session) Advance(now time.Time) {
	switch s.state {
	case Connecting:
		s.advanceConnecting(now)
	case Open:
		s.advanceOpen(now)
	case Closed:
	}
}

func (s *Session) advanceConnecting(now time.Time) {
	g := s.greeting
	switch {
	case now.Before(s.deadline()):
		if g != nil && !now.Before(g.at.Add(helloInterval)) {
			s.sendHello(now)
		}
	case g != nil:
		s.end(g.failure())
	default:
		s.end(ErrTimeout)
	}
}

func (s *Session) advanceOpen(now time.Time) {
	if !now.Before(s.deadline()) {
		s.end(ErrTimeout)
		return
	}
	if s.doubt.lost(now) {
		s.end(ErrSessionLost)
		return
	}
	if s.client && !now.Before(s.served.Add(silence)) {
		s.nameSession(now.Add(stayNamed))
	}
	if s.client && !s.asked.IsZero() && !now.Before(s.deafAt()) {
		s.goDeaf(now)
	}
	if !now.Before(s.nextHeartbeat()) {
		missing := s.client && now.Sub(s.served) >= beatInterval
		s.sendHeartbeat(now, missing || s.doubt.active() || s.rare())
		s.probe(now)
	}
	if v := s.validation; v != nil && !v.next.IsZero() && !now.Before(v.next) {
		s.challengeAll(now)
	}
	s.reliable.Advance(now)
	s.endIfExhausted()
}

// Next returns when to call [Session.Advance] next. It can become earlier by Input and SendReliable.
// A [Closed] session has nothing left to do, and returns the zero time.
func (s *Session) Next() time.Time {
	switch s.state {
	case Connecting:
		if s.client {
			return earlier(s.deadline(), s.greeting.at.Add(helloInterval))
		}
		return s.deadline()
	case Open:
		t := earlier(s.deadline(), s.nextHeartbeat())
		if s.doubt.active() {
			t = earlier(t, s.doubt.until)
		}
		if s.client && !s.long {
			t = earlier(t, s.served.Add(silence))
		}
		if v := s.validation; v != nil && !v.next.IsZero() {
			t = earlier(t, v.next)
		}
		if s.client && !s.asked.IsZero() {
			t = earlier(t, s.deafAt())
		}
		if flush, ok := s.reliable.Next(); ok {
			t = earlier(t, flush)
		}
		return t
	case Closed:
	}
	return time.Time{}
}

// deadline returns when the session ends if nothing is heard until then.
func (s *Session) deadline() time.Time {
	t := s.heard.Add(s.cfg.Timeout)
	switch {
	case s.state != Connecting:
		return t
	case s.client:
		return s.greeting.giveUp(t)
	}
	return earlier(t, s.heard.Add(maxPending))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
