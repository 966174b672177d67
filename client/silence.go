package client

import (
	"context"
	"time"

	"github.com/uplink-rpc/uplink/session"
)

const (
	// An answer is requested from probeSilence on, every probeInterval.
	probeSilence  = 500 * time.Millisecond
	probeInterval = 250 * time.Millisecond
	// minProbes is the number of such requests that a server must leave without an answer: if this
	// client was stopped, its server may have sent all the time.
	minProbes = int((maxSilence - probeSilence) / probeInterval)
	// lookInterval is the minimum time between two such searches.
	lookInterval = 2 * time.Second
)

// silence is the watch for a server that does not answer.
type silence struct {
	sent   uint64    // datagrams with calls, at the last check
	active time.Time // when more were sent
	probed time.Time
	heard  time.Time // when the server was heard last
	probes int       // since then
}

// listen looks for another server if this one does not answer while the client plays.
func (s *connection) listen(now time.Time) {
	if s.cfg.NoReconnect || !s.renews() {
		return
	}
	if sent := s.out.sent.Load(); sent != s.silence.sent {
		s.silence.sent, s.silence.active = sent, now
	}
	silent := s.own.Silence(now)
	if heard := now.Add(-silent); !heard.Equal(s.silence.heard) {
		s.silence.heard, s.silence.probes = heard, 0
	}
	unanswered := s.silence.probes >= minProbes
	switch {
	case silent < probeSilence:
		s.own.Wake(now.Add(probeSilence - silent))
		return
	case now.Sub(s.silence.active) > maxSilence: // the server need not send either
		s.own.Wake(now.Add(probeSilence))
		return
	case now.Sub(s.silence.probed) >= probeInterval:
		s.silence.probed = now
		s.silence.probes++
		s.own.Probe()
	}
	s.own.Wake(now.Add(probeInterval))
	if silent < maxSilence {
		s.own.Wake(now.Add(maxSilence - silent))
		return
	}
	if !unanswered {
		return
	}
	s.mu.Lock()
	look := s.link == s.own && s.standby == nil && !s.leaving && !now.Before(s.lookAgain)
	if look {
		s.lookAgain = now.Add(lookInterval)
		if s.state == session.Connected {
			s.note(session.Event{State: session.Interrupted})
		}
	}
	s.mu.Unlock()
	if !look {
		return
	}
	s.cfg.Logger.Warn("the server does not answer, looking for another one", "server", s.Server(), "silence", silent)
	ctx, cancel := context.WithCancel(context.Background())
	st := &standby{cancel: cancel}
	s.seek(st, func() error { return s.lookFor(ctx, st, s.assigned) })
}
