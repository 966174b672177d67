package ds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/fleetmember"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// joinFleet creates the server's member of the fleet, and returns the function that decides about
// joins; nil without [Config.Fleet].
func (s *Server) joinFleet() (admit func(context.Context, endpoint.Join) error, err error) {
	if s.cfg.Fleet == nil {
		return nil, nil
	}
	cfg := *s.cfg.Fleet
	if cfg.Logger == nil {
		cfg.Logger = s.cfg.Logger
	}
	if s.member, err = fleetmember.New(cfg, s.endReplaced); err != nil {
		return nil, fmt.Errorf("ds: Config.Fleet: %w", err)
	}
	entry := fleet.Server{Name: cfg.Name, Addrs: s.cfg.Addrs, Route: s.cfg.Transport.Route, MaxPlayers: s.cfg.MaxPlayers}
	if err := entry.Check(); err != nil {
		return nil, fmt.Errorf("ds: Config: %w", err)
	}
	return func(ctx context.Context, j endpoint.Join) error {
		return s.member.Admit(ctx, fleet.Use{Token: j.Token, Expires: j.Expires, Attempt: j.Attempt})
	}, nil
}

// takePart makes the server a member of the fleet until ctx is done or the returned function is
// called. It cancels the returned context with the reason if the fleet does not accept the server.
func (s *Server) takePart(ctx context.Context) (taking context.Context, stop func()) {
	if s.member == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.membership.Go(func() {
		if err := s.member.Run(ctx, s.entry); err != nil {
			cancel(err)
		}
	})
	return ctx, func() {
		cancel(nil)
		s.membership.Wait()
	}
}

// entry returns the server's entry in the directory.
func (s *Server) entry() fleet.Server {
	t := s.ln.Stats()
	e := fleet.Server{Route: s.cfg.Transport.Route, Players: t.Open, MaxPlayers: t.MaxConns, Draining: s.leaving.Load() || s.draining.Load()}
	switch addrs := s.addrs.Load(); {
	case addrs != nil:
		e.Addrs = *addrs
	case s.cfg.Addrs != nil:
		e.Addrs = s.cfg.Addrs
	default:
		e.Addrs = []netip.AddrPort{s.ln.Addr()}
	}
	if key := (*s.keys.Load())[0]; !key.Equal(token.Development()) {
		e.Key = key.ID().String()
	}
	return e
}

// endReplaced ends the session of a client that has joined another server, unless this one has
// released it: then the session is about to end.
func (s *Server) endReplaced(client uint64) {
	for _, h := range s.shards {
		for _, p := range h.list() {
			if p.ClientID() == client && !p.handover.isReleased() {
				p.end(transport.ErrReplaced, "")
			}
		}
	}
}

const (
	// directoryAge is the time for which a drain uses its copy of the directory.
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
				return to, cfg, fmt.Errorf("ds: %w: %w", transport.ErrServerBusy, err)
			}
			read = now
		}
		best, ok := fleet.Choose(servers, func(o *fleet.Server) bool {
			return o.Name != s.member.Name() && maps.Equal(o.Labels, s.member.Labels()) && !s.keyOf(o).IsZero()
		})
		switch {
		case !ok && !failed.IsZero() && read.Sub(failed) < directoryWait:
			return to, cfg, fmt.Errorf("%w: %w", transport.ErrServerBusy, errNoServer)
		case !ok:
			return to, cfg, errNoServer
		}
		for i := range servers {
			if servers[i].Name == best.Name {
				servers[i].Players++ // the server announces its load only later
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
