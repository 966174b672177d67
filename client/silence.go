package client

import (
	"context"
	"time"

	"github.com/uplink-rpc/uplink/session"
)

const (
	// maxSilence is the time without an answer after which a client that plays looks for another
	// server.
	maxSilence = 1250 * time.Millisecond
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

// listen looks for another server if that of the current link does not answer while the client
// plays.
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
	case now.Sub(w.active) > maxSilence: // the server need not send either
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
		if l.state == session.Connected {
			l.note(session.Event{State: session.Interrupted})
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
