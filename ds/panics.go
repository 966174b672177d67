package ds

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanic is wrapped by the error that Config.Left gets for a player whose session ended because a
// callback of the game panicked. The text contains the value of the panic.
var ErrPanic = errors.New("ds: a handler panicked")

// panicReason is the reason that the client of such a player gets. It does not contain the value of
// the panic, which may be about the server's internals.
const panicReason = "internal server error"

// guard calls f, a callback of the game for a player, or for none if p is nil. It recovers a panic
// of f and passes it to panicked. If f calls runtime.Goexit it does the same, but the goroutine
// ends: callers must leave what they change in a valid state before they call guard. The caller
// must not hold a lock.
func (s *Server) guard(p *Player, f func()) {
	returned := false
	defer func() {
		if !returned {
			s.panicked(p, recover(), debug.Stack())
		}
	}()
	f()
	returned = true
}

// apart calls f on another goroutine and waits for it. Callbacks that run while a connection is
// added or removed are called like this, so that runtime.Goexit does not leave that half done.
// Frames are handled between such changes.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// panicked counts and logs a panic, and ends the player's session. v is nil after runtime.Goexit.
func (s *Server) panicked(p *Player, v any, stack []byte) {
	s.panics.Add(1)
	text, id := "runtime.Goexit", uint64(0)
	if v != nil {
		text = fmt.Sprint(v)
	}
	if p != nil {
		id = p.ID()
		err := fmt.Errorf("%w: %s", ErrPanic, text)
		p.failure.CompareAndSwap(nil, &err)
		p.kicked.Store(true)
		defer p.end(panicReason) // after PanicHandler, which may Kick with a reason of its own, or panic
	}
	log := s.cfg.Logger
	if s.silent {
		log = slog.Default()
	}
	log.Error("handler panicked", "player", id, "panic", text, "stack", string(stack))
	if f := s.cfg.PanicHandler; f != nil {
		f(p, v, stack)
	}
}

// endedBy returns the cause for Config.Left: err, unless a panic ended the session.
func (p *Player) endedBy(err error) error {
	if failure := p.failure.Load(); err == nil && failure != nil {
		return *failure
	}
	return err
}
