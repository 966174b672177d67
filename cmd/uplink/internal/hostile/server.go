package hostile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Status is what a server has used and counted since its start.
type Status struct {
	CPU       time.Duration     `json:"cpu_ns"` // of the whole process
	Players   int               `json:"players"`
	Frames    uint64            `json:"frames"`    // of the honest players that are judged
	Datagrams uint64            `json:"datagrams"` // received from all clients
	SentBytes uint64            `json:"sent_bytes"`
	Drops     map[string]uint64 `json:"drops"` // messages and frames, by reason
}

// Server is the dedicated server that hostile clients attack. It takes the RPC Move, sends a world
// as snapshots and another as state, and sends each message of a player back to it.
type Server struct {
	srv    *ds.Server
	frames atomic.Uint64
	work   sync.WaitGroup
	stop   context.CancelFunc

	snapshots, states *ds.World[object]

	mu      sync.Mutex
	streams map[*ds.Player]*ds.StateStream[object]
}

// firstOther is the client id from which on clients are not judged.
const firstOther = 1000

// NewServer starts a server at a loopback address, where no key is needed. A nil network is UDP.
func NewServer(addr string, network transport.Network) (*Server, error) {
	s := &Server{streams: map[*ds.Player]*ds.StateStream[object]{}}
	var err error
	s.srv, err = ds.Listen(addr, ds.Config{
		Network: network, Joined: s.joined, Left: s.left,
		OnMessage: func(p *ds.Player, b []byte) { _ = p.SendReliable(b) }, // a backlog is the player's loss
	})
	if err != nil {
		return nil, err
	}
	if err := s.game(); err != nil {
		return nil, errors.Join(err, s.srv.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.work.Go(func() { _ = s.srv.Serve(ctx) })
	s.work.Go(func() { s.play(ctx) })
	return s, nil
}

func (s *Server) game() error {
	err := ds.Handle(s.srv, moveRPC, func(p *ds.Player, _ ds.Frame[move]) {
		if p.ClientID() < firstOther {
			s.frames.Add(1)
		}
	})
	if err != nil {
		return err
	}
	cfg := ds.WorldConfig[object]{TickHz: tickHz, SendHz: sendHz, Initial: func(put func(uint16, uint8, *object) error) error {
		for i := range objects {
			o := objectAt(i, 0)
			if err := put(uint16(i), 0, &o); err != nil {
				return err
			}
		}
		return nil
	}}
	if s.snapshots, err = ds.NewWorld(s.srv, snapshotWorld, cfg); err != nil {
		return err
	}
	s.states, err = ds.NewWorld(s.srv, stateWorld, ds.WorldConfig[object]{TickHz: tickHz, SendHz: sendHz})
	return err
}

func (s *Server) joined(p *ds.Player) {
	if _, err := s.snapshots.Offer(p); err != nil {
		return // it has left
	}
	stream, err := s.states.OfferState(p, ds.StateConfig{})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[p] = stream
}

func (s *Server) left(p *ds.Player, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, p)
}

// play makes ticks of the worlds.
func (s *Server) play(ctx context.Context) {
	ticker := time.NewTicker(time.Second / sendHz)
	defer ticker.Stop()
	for tick := uint64(1); ; tick += tickHz / sendHz {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.tick(tick)
	}
}

func (s *Server) tick(tick uint64) {
	s.mu.Lock()
	for _, stream := range s.streams {
		for i := range objects {
			_ = stream.Prioritize(uint16(i), 1) // a valid priority
		}
	}
	s.mu.Unlock()
	for _, w := range []*ds.World[object]{s.snapshots, s.states} {
		if w.Begin(tick) != nil {
			continue
		}
		for i := range objects {
			o := objectAt(i, tick)
			_ = w.Put(uint16(i), 0, &o) // within its bounds
		}
		w.Commit()
		_, _ = w.Send() // the players who leave meanwhile do not count
	}
}

// Addr returns the address to dial.
func (s *Server) Addr() string { return s.srv.Addr().String() }

// Status returns what the server has used and counted.
func (s *Server) Status() (Status, error) {
	st := s.srv.Stats()
	out := Status{CPU: meter.CPU(), Players: st.Transport.Conns, Frames: s.frames.Load(), Datagrams: st.Transport.DatagramsReceived, SentBytes: st.Transport.BytesSent, Drops: map[string]uint64{}}
	for d, n := range st.Drops {
		if n > 0 {
			out.Drops["message "+ds.Drop(d).String()] += n
		}
	}
	for _, r := range st.RPCs {
		for d, n := range r.Drops {
			if n > 0 {
				out.Drops["frame "+ds.Drop(d).String()] += n
			}
		}
	}
	if n, ok := s.srv.KernelDrops(); ok && n > 0 {
		out.Drops["kernel"] = n
	}
	for reason, n := range st.Transport.Dropped.All() {
		if n > 0 {
			out.Drops[reason] += n
		}
	}
	return out, nil
}

// Close ends the server.
func (s *Server) Close() error {
	s.stop()
	err := s.srv.Close()
	s.work.Wait()
	if err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	return nil
}
