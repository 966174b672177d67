package hostile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/child"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Status contains the counters of a server since its start.
type Status struct {
	CPU       time.Duration     `json:"cpu_ns"` // CPU time of the whole process
	Players   int               `json:"players"`
	Frames    uint64            `json:"frames"`    // frames of honest players
	Datagrams uint64            `json:"datagrams"` // received from all clients
	SentBytes uint64            `json:"sent_bytes"`
	Drops     map[string]uint64 `json:"drops"` // messages and frames, by reason
}

// Server is the dedicated server under attack. It accepts the RPCs Move0 to Move7, replicates a
// world as snapshots and another as state, and echoes messages.
type Server struct {
	host   *load.Host
	frames atomic.Uint64

	snapshots, states *load.Things
}

// firstOther is the lowest client id of attackers.
const firstOther = 1000

// NewServer starts a server at a loopback address, where no key is needed. A nil network is UDP.
func NewServer(addr string, network transport.Network) (*Server, error) {
	s := new(Server)
	srv, err := ds.Listen(addr, ds.Config{
		Network: network,
		Joined: func(p *ds.Player) {
			s.snapshots.Offer(p)
			s.states.OfferState(p)
		},
		Left:      func(p *ds.Player, _ error) { s.states.Leave(p) },
		OnMessage: func(p *ds.Player, b []byte) { _ = p.SendReliable(b) }, // a full backlog affects only the player
	})
	if err != nil {
		return nil, err
	}
	if err := s.game(srv); err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	s.host = load.Serve(srv, sendHz, func(n uint64) {
		s.snapshots.Send(n * tickHz / sendHz)
		s.states.Send(n * tickHz / sendHz)
	})
	return s, nil
}

func (s *Server) game(srv *ds.Server) error {
	for n := range bindings {
		err := ds.Handle(srv, moveRPC(n), func(p *ds.Player, _ ds.Frame[move]) {
			if p.ClientID() < firstOther {
				s.frames.Add(1)
			}
		})
		if err != nil {
			return err
		}
	}
	var err error
	if s.snapshots, err = load.NewThings(srv, snapshotWorld, objects, tickHz, sendHz); err != nil {
		return err
	}
	s.states, err = load.NewThings(srv, stateWorld, objects, tickHz, sendHz)
	return err
}

// Addr returns the address to dial.
func (s *Server) Addr() string { return s.host.Addr().String() }

// Address sets the address to dial. Like Status, it has the form of package net/rpc.
func (s *Server) Address(_ struct{}, addr *string) error {
	*addr = s.Addr()
	return nil
}

// Status sets the server's counters.
func (s *Server) Status(_ struct{}, out *Status) error {
	st := s.host.Stats()
	*out = Status{
		CPU: meter.CPU(), Players: st.Transport.Conns, Frames: s.frames.Load(),
		Datagrams: st.Transport.DatagramsReceived, SentBytes: st.Transport.BytesSent, Drops: map[string]uint64{},
	}
	add := func(reason string, n uint64) {
		if n > 0 {
			out.Drops[reason] += n
		}
	}
	for d, n := range st.Drops {
		add("message "+ds.Drop(d).String(), n)
	}
	for _, r := range st.RPCs {
		for d, n := range r.Drops {
			add("frame "+ds.Drop(d).String(), n)
		}
	}
	kernel, _ := s.host.KernelDrops()
	add("kernel", kernel)
	for reason, n := range st.Transport.Dropped.All() {
		add(reason, n)
	}
	return nil
}

// Close stops the server.
func (s *Server) Close() error { return s.host.Close() }

// Command is the name of the hidden command that runs the server in a process: it calls [Answer].
const Command = "soak-server"

// Answer runs a server until in ends, and answers calls from in on out.
func Answer(in io.Reader, out io.Writer) error {
	s, err := NewServer("127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	return errors.Join(child.Serve(in, out, s), s.Close())
}

// process is a server in a separate process, so that its CPU time can be measured.
type process struct {
	*child.Process
	addr string
}

// StartProcess starts this program with [Command] as a server.
func StartProcess() (Target, error) {
	c, err := child.Start(Command)
	if err != nil {
		return nil, err
	}
	p := &process{Process: c}
	if err := c.Call("Address", struct{}{}, &p.addr); err != nil {
		return nil, fmt.Errorf("hostile: %w", errors.Join(err, c.Kill()))
	}
	return p, nil
}

func (p *process) Addr() string { return p.addr }

func (p *process) Status(_ struct{}, st *Status) error { return p.Call("Status", struct{}{}, st) }

type move struct {
	Location schema.Vec3 `uplink:"resolution=0.1"`
	View     schema.Vec3 `uplink:"resolution=0.01,min=-360,max=360"`
	Tick     uint32
	Buttons  uint16
}

func moveAt(player int, tick uint64) move {
	at := float64(tick) / 60
	sin, cos := math.Sincos(at/2 + float64(player))
	return move{
		Location: schema.Vec3{X: 500 * sin, Y: 500 * cos, Z: 90},
		View:     schema.Vec3{X: 30 * sin, Y: math.Mod(at*40, 360), Z: 0},
		Tick:     uint32(tick),
		Buttons:  uint16(tick / 30 % 16),
	}
}

// moveRPC returns the name of RPC n.
func moveRPC(n int) string { return fmt.Sprint("Move", n) }

// Both worlds.
const (
	objects       = 128
	snapshotWorld = "snapshots"
	stateWorld    = "state"
	tickHz        = 60
	sendHz        = 30
)
