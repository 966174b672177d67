package ds

import (
	"fmt"
	"reflect"
)

// Validate has f look at each frame of an RPC, which [Handle] was called for with
// the same T, before the handler gets it. A frame for which f returns an error is
// not delivered: it is counted as refused, in the RPC's statistics and the
// player's ([Player.Rejected]), and adds to the next frame's Missed. With
// [Config.MaxRejected] so many of them end the session.
//
// It runs where handlers run, so it may read what the game knows of the player.
// The frame itself cannot be changed, and a refused one is a baseline like any
// other: what client and server know of each other's frames does not depend on what
// the game makes of them. Call Validate before Serve.
func Validate[T any](s *Server, name string, f func(*Player, Frame[T]) error) error {
	r, _ := s.lookup(name)
	if r == nil {
		return fmt.Errorf("ds: validate %s: it is not handled; call Handle first", name)
	}
	h, ok := r.handler.(*handler[T])
	if !ok {
		return fmt.Errorf("ds: validate %s: it is handled, but not with %v", name, reflect.TypeFor[T]())
	}
	h.validate = f
	return nil
}

// call calls the handler, unless the frame is refused or its player was kicked, and
// reports whether the handler returned. A panic ends the player's session.
func (h *handler[T]) call(p *Player, b *binding, f *Frame[T]) (handled bool) {
	if p.kicked.Load() {
		p.dropFrame(b, Kicked, 0)
		return false
	}
	p.server.guard(p, func() { handled = h.run(p, b, f) })
	return handled
}

// run is call without what protects the server from a panic.
func (h *handler[T]) run(p *Player, b *binding, f *Frame[T]) bool {
	if b.refused != 0 && !f.Late {
		f.Missed += b.refused
		b.refused = 0
	}
	if h.validate != nil {
		if err := h.validate(p, *f); err != nil {
			if !f.Late {
				b.refused = f.Missed + 1
			}
			p.refuse(b, f.Seq, err)
			return false
		}
	}
	h.f(p, *f)
	return true
}

// maxRefusedLogged is how many refused frames of a player are logged.
const maxRefusedLogged = 8

// refuse counts a frame that the game does not want.
func (p *Player) refuse(b *binding, seq uint64, err error) {
	p.dropFrame(b, Rejected, 0)
	n := p.Rejected()
	cfg := &p.server.cfg
	if n <= maxRefusedLogged {
		cfg.Logger.Warn("frame rejected", "rpc", b.rpc.schema.RPC(), "seq", seq, "player", p.ID(), "error", err)
	}
	if cfg.MaxRejected != 0 && n >= uint64(cfg.MaxRejected) {
		p.Kick("too many rejected frames")
	}
}

// Refused is how many of the player's frames [Validate] refused.
func (p *Player) Rejected() uint64 { return p.drops[Rejected].Load() }
