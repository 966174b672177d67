package ds

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// panicReason is the reason for the end of a session after a panic, as sent to the client. It does
// not contain the value of the panic, which may reveal internals of the server.
const panicReason = "internal server error"

// try calls f. If f panics or calls runtime.Goexit, it calls failed with the value of the panic, or
// nil, and the stack. runtime.Goexit ends the goroutine, so callers must leave their state valid
// before the call.
func try(f func(), failed func(v any, stack []byte)) {
	returned := false
	defer func() {
		if !returned {
			failed(recover(), debug.Stack())
		}
	}()
	f()
	returned = true
}

// guard tries f, a callback of the game for a player, or for none if p is nil, and passes a panic
// to panicked. The caller must not hold a lock.
func (s *Server) guard(p *Player, f func()) {
	try(f, func(v any, stack []byte) { s.panicked(p, v, stack) })
}

// onGoroutine calls f on a new goroutine and waits for it. Callbacks that run while a connection is
// added or removed are called like this, so that runtime.Goexit cannot interrupt the addition or
// removal.
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
	e := event{typ: panicEvent, text: text}
	if p != nil {
		id, e.player, e.client = p.ID(), p.ID(), p.ClientID()
		err := fmt.Errorf("%w: %s", transport.ErrPanic, text)
		p.failure.CompareAndSwap(nil, &err)
		p.kicked.Store(true)
		defer p.end(transport.ErrKicked, panicReason) // after PanicHandler, which may Kick with a reason of its own, or panic
	}
	s.events.add(e)
	log := s.cfg.Logger
	if s.silent {
		log = slog.Default()
	}
	log.Error("handler panicked", "player", id, "panic", text, "stack", string(stack))
	if f := s.cfg.Hooks.PanicHandler; f != nil {
		f(p, v, stack)
	}
}

// guardedTap recovers panics of a PlayerTap. The first one ends the player's session, and no method
// is called after it.
type guardedTap struct {
	player *Player
	tap    PlayerTap
	broken atomic.Bool
}

// guardTap calls Joined of the server's tap, and returns the PlayerTap guarded, or nil.
func (s *Server) guardTap(p *Player, suite transport.Suite) PlayerTap {
	var tap PlayerTap
	onGoroutine(func() {
		s.guard(p, func() { tap = s.cfg.Hooks.Tap.Joined(p, suite) })
	})
	if tap == nil {
		return nil
	}
	return &guardedTap{player: p, tap: tap}
}

// Carried may be called by any goroutine, with the connection's lock held. Its panic is therefore
// postponed to the shard's next tick.
func (g *guardedTap) Carried(c transport.TapEvent) {
	if g.broken.Load() {
		return
	}
	try(func() { g.tap.Carried(c) }, func(v any, stack []byte) {
		if g.broken.Swap(true) {
			return
		}
		p := g.player
		p.kicked.Store(true)
		p.shard.mu.Lock()
		defer p.shard.mu.Unlock()
		p.shard.postponed = append(p.shard.postponed, func() { p.server.panicked(p, v, stack) })
	})
}

func (g *guardedTap) call(f func()) {
	if g.broken.Load() {
		return
	}
	try(f, func(v any, stack []byte) {
		g.broken.Store(true)
		g.player.server.panicked(g.player, v, stack)
	})
}

func (g *guardedTap) Bound(b Binding) { g.call(func() { g.tap.Bound(b) }) }

func (g *guardedTap) Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery) {
	g.call(func() { g.tap.Decoded(at, rpc, frames) })
}

func (g *guardedTap) Dropped(at time.Time, rpc int, d Drop, decoder bool) {
	g.call(func() { g.tap.Dropped(at, rpc, d, decoder) })
}

func (g *guardedTap) Withheld(at time.Time, rpc int, seq uint64, d Drop) {
	g.call(func() { g.tap.Withheld(at, rpc, seq, d) })
}

func (g *guardedTap) Left(err error) { g.call(func() { g.tap.Left(err) }) }
