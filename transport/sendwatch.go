package transport

import (
	"log/slog"
	"time"
)

// sendQuiet is for how long no datagram must have failed before sending counts as restored.
const sendQuiet = 5 * time.Second

// sendWatch logs when a packet connection begins to refuse datagrams, for want of buffers, permission or a route or
// for their size, and when that has ended: two records for each such time, however many datagrams fail and whether or
// not others are sent meanwhile. Only the loop uses it.
type sendWatch struct {
	log          *slog.Logger
	sent, failed uint64    // as of the last look
	before       uint64    // failures before the present time of failures
	first, last  time.Time // when failures of that time were seen; zero: sending works
}

// watchSending compares the counts of what was sent with those of its last call.
func (l *loop) watchSending(now time.Time) {
	w, c := &l.watch, l.outbox.sent
	sent, failed := c.datagrams.Load(), c.failed.Load()
	if sent == w.sent && failed == w.failed {
		return
	}
	switch {
	case failed != w.failed:
		cause := c.cause.Swap(nil)
		if w.first.IsZero() && cause != nil {
			w.first, w.before = now, w.failed
			w.log.Warn("datagrams not sent", "local", l.pc.LocalAddr(), "error", *cause)
		}
		w.last = now
	case !w.first.IsZero() && now.Sub(w.last) >= sendQuiet:
		w.log.Info("datagrams sent again", "local", l.pc.LocalAddr(), "failed", failed-w.before, "lasted", w.last.Sub(w.first))
		w.first = time.Time{}
	}
	w.sent, w.failed = sent, failed
}
