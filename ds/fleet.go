package ds

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// joinFleet creates the server's part in a fleet, and returns the function that is asked about
// joins; nil without [Config.Fleet].
func (s *Server) joinFleet() (admit func(context.Context, transport.Join) error, err error) {
	if s.cfg.Fleet == nil {
		return nil, nil
	}
	cfg := *s.cfg.Fleet
	if cfg.Logger == nil {
		cfg.Logger = s.cfg.Logger
	}
	if s.member, err = fleet.NewMember(cfg, s.endReplaced); err != nil {
		return nil, fmt.Errorf("ds: Config.Fleet: %w", err)
	}
	entry := fleet.Server{Name: cfg.Name, Addrs: s.cfg.Addrs, Route: s.cfg.Route, MaxPlayers: s.cfg.MaxPlayers}
	if err := entry.Check(); err != nil {
		return nil, fmt.Errorf("ds: Config: %w", err)
	}
	return func(ctx context.Context, j transport.Join) error {
		return s.member.Admit(ctx, fleet.Use{Token: j.Token, Expires: j.Expires, Attempt: j.Attempt})
	}, nil
}

// takePart participates in the fleet until the returned function is called.
func (s *Server) takePart(ctx context.Context) (stop func()) {
	if s.member == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	s.membership.Go(func() { s.member.Run(ctx, s.entry) })
	return func() {
		cancel()
		s.membership.Wait()
	}
}

// entry returns the server's entry in the directory.
func (s *Server) entry() fleet.Server {
	t := s.ln.Stats()
	e := fleet.Server{Route: s.cfg.Route, Players: t.Open, MaxPlayers: t.MaxConns, Draining: s.leaving.Load() || s.draining.Load()}
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
				p.end(session.ErrReplaced, "")
			}
		}
	}
}
