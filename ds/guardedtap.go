package ds

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

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
		s.guard(p, func() { tap = s.cfg.Tap.Joined(p, suite) })
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
	returned := false
	defer func() {
		if !returned && !g.broken.Swap(true) {
			g.player.shard.postpone(tapPanic{g.player, recover(), debug.Stack()})
		}
	}()
	g.tap.Carried(c)
	returned = true
}

// call calls a method of the tap.
func (g *guardedTap) call(f func()) {
	if g.broken.Load() {
		return
	}
	returned := false
	g.player.server.guard(g.player, func() {
		defer func() {
			if !returned {
				g.broken.Store(true)
			}
		}()
		f()
		returned = true
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

// postpone queues a panic for handlePostponed. It is safe for concurrent use.
func (h *shard) postpone(t tapPanic) {
	t.player.kicked.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.postponed = append(h.postponed, t)
}

// handlePostponed handles the postponed panics.
func (h *shard) handlePostponed() {
	for {
		h.mu.Lock()
		if len(h.postponed) == 0 {
			h.mu.Unlock()
			return
		}
		t := h.postponed[0]
		h.postponed = h.postponed[1:]
		h.mu.Unlock()
		h.server.panicked(t.player, t.value, t.stack)
	}
}
