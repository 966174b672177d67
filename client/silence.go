package client

import (
	"context"
	"time"
)

const (
	// maxSilence is the time without an answer after which a client whose program makes calls looks
	// for another server.
	maxSilence = 1250 * time.Millisecond
	// From probeSilence on, an answer is requested every probeInterval.
	probeSilence  = 500 * time.Millisecond
	probeInterval = 250 * time.Millisecond
	// minProbes is the number of unanswered requests that a search requires. It prevents a search
	// after this process was suspended while its server kept sending.
	minProbes = int((maxSilence - probeSilence) / probeInterval)
	// lookInterval is the minimum time between two searches.
	lookInterval = 2 * time.Second
)

// silence detects that the server does not answer.
type silence struct {
	sent   uint64    // number of datagrams with calls at the last check
	active time.Time // last check at which sent had grown
	probed time.Time
	heard  time.Time // time of the last datagram from the server
	probes int       // requests for an answer since heard
}

// listen starts a search for another server if the server of the current link does not answer while
// the program makes calls.
func (w *silence) listen(l *link, now time.Time) {
	if l.cfg.NoReconnect || !l.renews() {
		return
	}
	if sent := l.out.sent.Load(); sent != w.sent {
		w.sent, w.active = sent, now
	}
	silent := l.own.Silence(now)
	if heard := now.Add(-silent); !heard.Equal(w.heard) {
		w.heard, w.probes = heard, 0
	}
	unanswered := w.probes >= minProbes
	switch {
	case silent < probeSilence:
		l.own.Wake(now.Add(probeSilence - silent))
		return
	case now.Sub(w.active) > maxSilence: // the client made no calls, so the server may be silent
		l.own.Wake(now.Add(probeSilence))
		return
	case now.Sub(w.probed) >= probeInterval:
		w.probed = now
		w.probes++
		l.own.Probe()
	}
	l.own.Wake(now.Add(probeInterval))
	if silent < maxSilence {
		l.own.Wake(now.Add(maxSilence - silent))
		return
	}
	if !unanswered {
		return
	}
	l.mu.Lock()
	look := l.current == l && l.move == nil && !l.leaving && !now.Before(l.lookAgain)
	if look {
		l.lookAgain = now.Add(lookInterval)
		if l.state == Connected {
			l.note(Event{State: Interrupted})
		}
	}
	l.mu.Unlock()
	if !look {
		return
	}
	l.cfg.Logger.Warn("the server does not answer, looking for another one", "server", l.addr, "silence", silent)
	ctx, cancel := context.WithCancel(context.Background())
	m := &move{cancel: cancel}
	l.begin(m, func() error { return newSearch(l.Conn, m).run(ctx) })
}
