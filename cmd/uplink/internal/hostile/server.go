package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/child"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Status contains the counters of a server since its start.
type Status struct {
	CPU       time.Duration     `json:"cpu_ns"` // of the whole process
	Players   int               `json:"players"`
	Frames    uint64            `json:"frames"`    // of the honest players
	Datagrams uint64            `json:"datagrams"` // received from all clients
	SentBytes uint64            `json:"sent_bytes"`
	Drops     map[string]uint64 `json:"drops"` // messages and frames, by reason
}

// Server is the dedicated server under attack. It accepts the RPCs Move0 to Move7, replicates a
// world as snapshots and another as state, and echoes messages.
type Server struct {
	srv    *ds.Server
	frames atomic.Uint64
	work   sync.WaitGroup
	stop   context.CancelFunc

	snapshots, states *ds.World[object]

	mu      sync.Mutex
	streams map[*ds.Player]*ds.StateStream
}

// firstOther is the lowest client id of attackers.
const firstOther = 1000

// NewServer starts a server at a loopback address, where no key is needed. A nil network is UDP.
func NewServer(addr string, network transport.Network) (*Server, error) {
	s := &Server{streams: map[*ds.Player]*ds.StateStream{}}
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
	for n := range bindings {
		err := ds.Handle(s.srv, moveRPC(n), func(p *ds.Player, _ ds.Frame[move]) {
			if p.ClientID() < firstOther {
				s.frames.Add(1)
			}
		})
		if err != nil {
			return err
		}
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
	var err error
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

func (s *Server) play(ctx context.Context) {
	tick := uint64(1)
	for range sleep.Every(ctx, time.Second/sendHz) {
		s.tick(tick)
		tick += tickHz / sendHz
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
		_, _ = w.Send() // errors of leaving players do not matter
	}
}

// Addr returns the address to dial.
func (s *Server) Addr() string { return s.srv.Addr().String() }

// Status returns the server's counters.
func (s *Server) Status() (Status, error) {
	st := s.srv.Stats()
	out := Status{
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
	kernel, _ := s.srv.KernelDrops()
	add("kernel", kernel)
	for reason, n := range st.Transport.Dropped.All() {
		add(reason, n)
	}
	return out, nil
}

// Close stops the server.
func (s *Server) Close() error {
	s.stop()
	err := s.srv.Close()
	s.work.Wait()
	if err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	return nil
}

// Command is the name of the hidden command whose process is the server: it calls [Answer].
const Command = "soak-server"

// Answer starts a server and answers requests from in on out: its address in the first line, and
// then for each line of in its [Status], in lines of JSON. It returns at the end of in.
func Answer(in io.Reader, out io.Writer) (err error) {
	s, err := NewServer("127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lines, encoder := bufio.NewScanner(in), json.NewEncoder(out)
	if err := encoder.Encode(s.Addr()); err != nil {
		return err
	}
	for lines.Scan() {
		st, err := s.Status()
		if err == nil {
			err = encoder.Encode(st)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// process is a server in a process of its own, to measure its CPU time separately.
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
	if err := p.Ask(nil, &p.addr); err != nil {
		return nil, errors.Join(fmt.Errorf("hostile: %w", err), p.Close())
	}
	return p, nil
}

func (p *process) Addr() string { return p.addr }

// Status asks the process.
func (p *process) Status() (st Status, err error) {
	if err = p.Ask("status", &st); err != nil {
		err = fmt.Errorf("hostile: %w", err)
	}
	return st, err
}

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

type object struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000"`
	Rotation schema.Quat `uplink:"bits=11"`
	Lit      bool
}

// objects is the number of objects of each world: every third one rests.
const objects = 128

func objectAt(i int, tick uint64) object {
	if i%3 == 0 {
		tick = 0
	}
	sin, cos := math.Sincos(float64(tick)/60 + float64(i))
	return object{
		Position: schema.Vec3{X: 3*float64(i%16) + 5*cos, Y: 3*float64(i/16) + 5*sin},
		Rotation: schema.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Lit:      (tick/60+uint64(i))%7 == 0,
	}
}

// moveRPC returns the name of RPC n.
func moveRPC(n int) string { return fmt.Sprint("Move", n) }

// Names and rates of the worlds.
const (
	snapshotWorld = "snapshots"
	stateWorld    = "state"
	tickHz        = 60
	sendHz        = 30
)
