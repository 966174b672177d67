package ds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
)

const (
	// drainRate is the number of players per second that a draining server hands over: other
	// servers are not to be overrun.
	drainRate = 100
	// drainRetry is the time after which a handover that failed is tried again.
	drainRetry = time.Second
)

// drain is a call of [Server.Drain].
type drain struct {
	server *Server
	choose func(*Player) (Target, HandoverConfig, error)
	next   map[*Player]time.Time // when to hand a player over; zero: never again

	mu       sync.Mutex
	outcomes []drained // that step has not handled
}

// drained is the outcome of a handover.
type drained struct {
	player *Player
	err    error
}

// Drain empties the server and closes it, without a gap for its players. It refuses new players
// (session.ErrDraining), whose tokens are not used up, announces that in the fleet's directory,
// hands each player over to the server that choose returns ([Player.Handover]), also those whose
// handshake had begun, waits until all of them have left, with [Config.Poll] until the game has
// polled everything, and closes the server like [Server.Close].
//
// If choose is nil, it is the choice of a server with the same labels from the fleet's directory,
// by load; the handover has no payload. Choose is called again after a second if its error wraps
// session.ErrServerBusy, as while the directory cannot be read, or if the client cannot reach the
// other server. If choose returns another error, as without [Config.Fleet], or the client supports
// no handovers, the player is told to leave as by [Server.Shutdown]. The session of a client that
// does not switch within 30 s ends.
//
// If ctx is done before, Drain ends the sessions that are left and returns the error of ctx. It
// calls choose on the caller's goroutine, for about 100 players a second. Like Close, it must not
// be called from a handler, and once.
func (s *Server) Drain(ctx context.Context, choose func(*Player) (Target, HandoverConfig, error)) error {
	if choose == nil {
		choose = s.otherServers(ctx)
	}
	d := &drain{server: s, choose: choose, next: map[*Player]time.Time{}}
	outcome := func(p *Player, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.outcomes = append(d.outcomes, drained{p, err})
	}
	s.outcome.Store(&outcome)
	s.draining.Store(true)
	s.refuseJoins()
	s.cfg.Logger.Info("draining", "players", s.Stats().Transport.Open)
	var cut error
	if s.serving.Load() {
		cut = d.run(ctx)
	}
	return errors.Join(cut, s.Close())
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
		case errors.Is(o.err, session.ErrTimeout): // a client that obeys neither
			o.player.end(session.ErrShutdown, "")
		case errors.Is(o.err, session.ErrHandover):
			d.next[o.player] = now.Add(drainRetry)
		case errors.Is(o.err, session.ErrUnhandled):
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
		case errors.Is(err, net.ErrClosed), errors.Is(err, session.ErrHandedOver):
		case errors.Is(err, session.ErrBacklog), errors.Is(err, session.ErrServerBusy):
			d.next[p] = now.Add(drainRetry)
		case err != nil:
			d.server.cfg.Logger.Warn("not handed over", "player", p.ID(), "error", err)
			p.leaves.Store(true)
		}
		return
	}
}

const (
	// directoryAge is the time for which a drain uses what it has read of the directory.
	directoryAge = 2 * time.Second
	// directoryWait is the time in which servers return to the directory after an outage of it.
	directoryWait = fleet.ServerTTL / 2
)

var errNoServer = errors.New("ds: no other server accepts the player")

// otherServers returns the function that chooses a server of the fleet for each player of a drain.
func (s *Server) otherServers(ctx context.Context) func(*Player) (Target, HandoverConfig, error) {
	var servers []fleet.Server
	var read, failed time.Time
	return func(*Player) (to Target, cfg HandoverConfig, err error) {
		if s.member == nil {
			return to, cfg, errNoServer
		}
		if now := time.Now(); now.Sub(read) >= directoryAge {
			if servers, err = s.member.Servers(ctx); err != nil {
				failed = now
				return to, cfg, fmt.Errorf("ds: %w: %w", session.ErrServerBusy, err)
			}
			read = now
		}
		best, ok := fleet.Choose(servers, func(o *fleet.Server) bool {
			return o.Name != s.member.Name() && maps.Equal(o.Labels, s.member.Labels()) && !s.keyOf(o).IsZero()
		})
		switch {
		case !ok && !failed.IsZero() && read.Sub(failed) < directoryWait:
			return to, cfg, fmt.Errorf("%w: %w", session.ErrServerBusy, errNoServer)
		case !ok:
			return to, cfg, errNoServer
		}
		for i := range servers {
			if servers[i].Name == best.Name {
				servers[i].Players++ // it announces its load later
			}
		}
		return Target{Addrs: best.Addrs[:min(len(best.Addrs), token.MaxServers)], Route: best.Route, Key: s.keyOf(&best)}, cfg, nil
	}
}

// keyOf returns the key that tokens for a server of the fleet need, or the zero key if this server
// does not have it.
func (s *Server) keyOf(o *fleet.Server) token.IssuerKey {
	for _, k := range *s.keys.Load() {
		if o.Key == k.ID().String() || o.Key == "" && k.Equal(token.Development()) {
			return k.Issuer()
		}
	}
	return token.IssuerKey{}
}
