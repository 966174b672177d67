package transport

import (
	"sync"
	"time"
)

// past is before, and forever after, any time of the clock.
var past, forever = time.Unix(1, 0), time.Unix(1<<40, 0) //nolint:forbidigo // no step of the wall clock matters here

// alarm ends the read of a loop that sleeps until something is due. The loop sets it before it reads; meanwhile
// others can have it ring earlier. It is safe for concurrent use.
type alarm struct {
	pc PacketConn

	mu    sync.Mutex
	at    time.Time // when it rings: the read deadline, unless the loop is about to set it
	wish  time.Time // when the handler's tick is due; zero: not at all
	ended bool
}

// set has the alarm ring when next says, or when the handler's tick is due. What others ask for while next looks
// counts too.
func (a *alarm) set(next func() time.Time) error {
	a.mu.Lock()
	a.at = forever
	a.mu.Unlock()
	at := next()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	if !a.wish.IsZero() && a.wish.Before(at) {
		at = a.wish
	}
	if at.Before(a.at) {
		a.at = at
	}
	return a.pc.SetReadDeadline(a.at)
}

// by has it ring at that time at the latest.
func (a *alarm) by(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring(at)
}

// ring is by with the lock held.
func (a *alarm) ring(at time.Time) {
	if a.ended || !at.Before(a.at) {
		return
	}
	a.at = at
	// An error means that the packet connection is closed, which ends the read too.
	_ = a.pc.SetReadDeadline(at)
}

// tickBy has the handler's tick be due at that time at the latest.
func (a *alarm) tickBy(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wish.IsZero() || at.Before(a.wish) {
		a.wish = at
		a.ring(at)
	}
}

// take reports whether the handler's tick is due, and since when. It is not any more then.
func (a *alarm) take(now time.Time) (since time.Time, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since = a.wish
	if since.IsZero() || now.Before(since) {
		return time.Time{}, false
	}
	a.wish = time.Time{}
	return since, true
}

// end has it ring at once, and for good.
func (a *alarm) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	_ = a.pc.SetReadDeadline(past)
}
