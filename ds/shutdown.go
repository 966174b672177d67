package ds

import (
	"context"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/control"
)

// leavingReason is what a player is told who comes too late.
const leavingReason = "the server shuts down"

// Shutdown ends Serve without losing anything: nobody is let in any more, the
// players are told, and it waits until each has everything that was sent to it
// reliably, until what it had sent reliably itself has come and it has left, and with
// [Config.Poll] until the game has polled all that. Then, or when ctx is done, it does
// as [Server.Close]; the error is then ctx's. Clients that are told go by themselves
// and come back when a server is there again. What handlers send from then on may be
// lost. Like Close it must not be called from a handler.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	var cut error
	if s.serving.Load() {
		select {
		case <-s.drained:
		case <-s.served:
		case <-ctx.Done():
			cut = fmt.Errorf("ds: shut down before all players had left: %w", context.Cause(ctx))
		}
	}
	return errors.Join(cut, s.Close())
}

// drain tells the shard's players who have everything to leave, again and again since
// it may be lost, and notes when all of the server are gone. It runs in the shard's
// goroutine.
func (h *shard) drain() {
	s := h.server
	for p := range h.players {
		if p.conn.Unacked() == 0 {
			_ = p.conn.Send([]byte{byte(control.Leaving)}) // or it is gone by now
		}
	}
	if len(h.players) == 0 && !h.empty {
		h.empty = true
		s.peopled.Add(-1)
	}
	if s.peopled.Load() == 0 && s.queue.idle() {
		s.drainOnce.Do(func() { close(s.drained) })
	}
}
