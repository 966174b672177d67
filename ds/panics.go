package ds

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanic is wrapped by the error of Config.Left for a player whose session ended because a
// callback of the game panicked. The text contains the value of the panic.
var ErrPanic = errors.New("ds: a handler panicked")

// panicReason is the reason for which such a session ends, as sent to the client. It does not
// contain the value of the panic, which may be about the server's internals.
const panicReason = "internal server error"

// guard calls f, a callback of the game for a player, or for none if p is nil. It recovers a panic
// of f and passes it to panicked. If f calls runtime.Goexit it does the same, but the goroutine
// ends: callers must leave their state valid before they call guard. The caller
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

// onGoroutine calls f on a new goroutine and waits for it. Callbacks that run while a connection is
// added or removed are called like this, so that runtime.Goexit does not leave that half done.
// Frames are handled between such changes.
func onGoroutine(f func()) {
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
