package ds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

const (
	// drainRate is the number of players per second that a draining server hands over. It protects
	// the other servers from overload.
	drainRate = 100
	// drainRetry is the time after which a handover that failed is tried again.
	drainRetry = time.Second
)

// drain is a call of [Server.Drain].
type drain struct {
	server *Server
	choose func(*Player) (Target, HandoverConfig, error)
	next   map[*Player]time.Time // time at which to hand a player over; zero means never again

	mu       sync.Mutex
	outcomes []drained // outcomes that step has not handled yet
}

// drained is the outcome of a handover.
type drained struct {
	player *Player
	err    error
}

func (d *drain) run(ctx context.Context) error {
	step := time.NewTicker(time.Second / drainRate)
	defer step.Stop()
	for {
		select {
		case <-d.server.drained:
			return nil
		case <-d.server.served:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("ds: drain before all players had left: %w", context.Cause(ctx))
		case now := <-step.C:
			d.step(now)
		}
	}
}

// step hands over one player.
func (d *drain) step(now time.Time) {
	d.mu.Lock()
	outcomes := d.outcomes
	d.outcomes = nil
	d.mu.Unlock()
	for _, o := range outcomes {
		switch {
		case errors.Is(o.err, transport.ErrTimeout): // the client neither switches nor leaves
			o.player.end(transport.ErrShutdown, "")
		case errors.Is(o.err, transport.ErrHandover):
			d.next[o.player] = now.Add(drainRetry)
		case errors.Is(o.err, transport.ErrUnhandled):
			o.player.leaves.Store(true)
		}
	}
	for p := range d.server.Players() {
		if at, known := d.next[p]; known && (at.IsZero() || now.Before(at)) {
			continue
		}
		d.next[p] = time.Time{}
		to, cfg, err := d.choose(p)
		if err == nil {
			err = p.Handover(to, cfg)
		}
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, transport.ErrHandedOver):
		case errors.Is(err, transport.ErrBacklog), errors.Is(err, transport.ErrServerBusy):
			d.next[p] = now.Add(drainRetry)
		case err != nil:
			d.server.cfg.Logger.Warn("not handed over", "player", p.ID(), "error", err)
			p.leaves.Store(true)
		}
		return
	}
}
