package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// servers are two dedicated servers, the first of which restarts at the same address. They hand
// players over to each other, and each sends a world.
type servers struct {
	key     token.Key
	traces  []*trace.Trace
	check   *verifier
	limit   int // maximum number of players
	network transport.Network
	addrs   [2]netip.AddrPort

	handovers atomic.Uint64 // number of completed handovers

	mu    sync.Mutex
	hosts [2]*load.Host // nil: the server is down
	past  counts        // counters of previous servers
}

const (
	// The world of each server.
	worldName = "things"
	things    = 16
	worldHz   = 10
	// restarting is the index of the server that restarts.
	restarting = 0
	// handoverTicks is the number of ticks between two handovers of a random player at each server.
	handoverTicks = worldHz
)

// Range of ports for the servers, below the ephemeral ports of operating systems, so that no
// player's socket gets the port during a restart.
const (
	firstPort = 20_000
	ports     = 10_000
	attempts  = 20
)

type counts struct{ Frames, Missed, Desync uint64 }

func newServers(o Options, traces []*trace.Trace) (*servers, error) {
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	s := &servers{key: key, traces: traces, check: newVerifier(traces), limit: o.Players, network: o.Network}
	for i := range s.hosts {
		for range attempts {
			if err = s.start(i, fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))); err == nil {
				break
			}
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// start starts server i, which is down.
func (s *servers) start(i int, addr string) error {
	var world *load.Things
	srv, err := ds.Listen(addr, ds.Config{
		Key: s.key, MaxPlayers: s.limit + 1, Network: s.network, Left: s.check.Left,
		Hooks: ds.Hooks{
			Connected: func(p *ds.Player) { world.Offer(p) },
			HandedOver: func(_ *ds.Player, err error) {
				if err == nil {
					s.handovers.Add(1)
				}
			},
		},
	})
	if err != nil {
		return err
	}
	err = ds.HandleSchema(srv, s.traces[0].Schema, s.check.Frame)
	if err == nil {
		world, err = load.NewThings(srv, worldName, things, worldHz, worldHz)
	}
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs[i] = srv.Addr()
	s.hosts[i] = load.Serve(srv, worldHz, func(tick uint64) {
		world.Send(tick)
		if tick%handoverTicks == 0 {
			s.handOver(i, 1-i)
		}
	})
	return nil
}

// handOver hands a random player over from one server to the other, if both are up.
func (s *servers) handOver(from, to int) {
	s.mu.Lock()
	source, target := s.hosts[from], s.hosts[to]
	s.mu.Unlock()
	if source == nil || target == nil {
		return
	}
	var chosen *ds.Player
	n := 0
	for p := range source.Players() {
		if n++; rand.IntN(n) == 0 {
			chosen = p
		}
	}
	if chosen != nil {
		// This fails if the player has left or is being handed over.
		_ = chosen.Handover(ds.Target{Addrs: []netip.AddrPort{target.Addr()}}, ds.HandoverConfig{})
	}
}

// stop ends server i, if it is up.
func (s *servers) stop(i int) error {
	s.mu.Lock()
	h := s.hosts[i]
	s.hosts[i] = nil
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	err := h.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = meter.Sum(s.past, countsOf(h))
	return err
}

// close ends everything.
func (s *servers) close() error { return errors.Join(s.stop(0), s.stop(1)) }

func countsOf(h *load.Host) (c counts) {
	for _, rpc := range h.Stats().RPCs {
		c = meter.Sum(c, counts{Frames: rpc.Frames(), Missed: rpc.Missed, Desync: rpc.Drops[ds.Desync]})
	}
	return c
}

// counts returns the counters of both servers and all previous ones.
func (s *servers) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.past
	for _, h := range s.hosts {
		if h != nil {
			c = meter.Sum(c, countsOf(h))
		}
	}
	return c
}
