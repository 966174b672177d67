package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
)

// server is a dedicated server that restarts at the same address, and a second one that does not.
// They hand players over to each other, and each sends a world.
type server struct {
	key     token.Key
	traces  []*trace.Trace
	check   *verifier
	limit   int // players
	network transport.Network
	stopped context.CancelFunc
	working sync.WaitGroup

	handovers atomic.Uint64 // that completed

	mu     sync.Mutex
	first  *host
	second *host
	past   counts // of previous servers
}

// host is a running server.
type host struct {
	srv    *ds.Server
	world  *ds.World[thing]
	served chan error // receives the result of Serve, then is closed
	addr   netip.AddrPort
}

// thing is an object of the world.
type thing struct {
	X, Y float32 `uplink:"resolution=0.1,min=-1000,max=1000"`
}

const (
	worldName = "things"
	things    = 16
	worldHz   = 10
	// handoverTicks is the number of ticks of the world between two handovers of a random player at
	// each server.
	handoverTicks = worldHz
)

// Range of ports for the server, below the ephemeral ports of operating systems, so that no
// player's socket gets the port during a restart.
const (
	firstPort = 20_000
	ports     = 10_000
	attempts  = 20
)

type counts struct{ Frames, Missed, Desync uint64 }

func newServer(o Options, traces []*trace.Trace) (*server, error) {
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	s := &server{key: key, traces: traces, check: newVerifier(traces), limit: o.Players, network: o.Network}
	for _, h := range []**host{&s.first, &s.second} {
		for range attempts {
			if *h, err = s.open(fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))); err == nil {
				break
			}
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopped = cancel
	s.working.Go(func() {
		tick := uint64(0)
		for range sleep.Every(ctx, time.Second/worldHz) {
			tick++
			s.step(tick)
		}
	})
	return s, nil
}

func (s *server) open(addr string) (*host, error) {
	h := &host{served: make(chan error, 1)}
	cfg := ds.Config{Key: s.key, MaxPlayers: s.limit + 1, Network: s.network, Left: s.check.Left}
	cfg.Connected = func(p *ds.Player) { _, _ = h.world.Offer(p) } // fails if it has left
	cfg.HandedOver = func(_ *ds.Player, err error) {
		if err == nil {
			s.handovers.Add(1)
		}
	}
	var err error
	if h.srv, err = ds.Listen(addr, cfg); err != nil {
		return nil, err
	}
	h.addr = h.srv.Addr()
	err = ds.HandleSchema(h.srv, s.traces[0].Schema, s.check.Frame)
	if err == nil {
		h.world, err = ds.NewWorld(h.srv, worldName, ds.WorldConfig[thing]{TickHz: worldHz})
	}
	if err != nil {
		return nil, errors.Join(err, h.srv.Close())
	}
	go func() {
		defer close(h.served)
		h.served <- h.srv.Serve(context.Background())
	}()
	return h, nil
}

// step sends the worlds, and sometimes hands players over.
func (s *server) step(tick uint64) {
	s.mu.Lock()
	first, second := s.first, s.second
	s.mu.Unlock()
	for _, h := range []*host{first, second} {
		if h == nil || h.world.Begin(tick) != nil {
			continue
		}
		for i := range uint64(things) {
			_ = h.world.Put(uint16(i), 0, &thing{float32(i * 10), float32((tick + i) % 1000)}) // within its bounds
		}
		_, _ = h.world.Send() // errors of leaving players do not matter
	}
	if first != nil && tick%handoverTicks == 0 {
		first.handOver(second)
		second.handOver(first)
	}
}

// handOver hands a random player over.
func (h *host) handOver(to *host) {
	var chosen *ds.Player
	n := 0
	for p := range h.srv.Players() {
		if n++; rand.IntN(n) == 0 {
			chosen = p
		}
	}
	if chosen != nil {
		_ = chosen.Handover(ds.Target{Addrs: []netip.AddrPort{to.addr}}, ds.HandoverConfig{}) // it may have left, or be busy
	}
}

func (h *host) close() error {
	if h == nil {
		return nil
	}
	return errors.Join(h.srv.Close(), <-h.served)
}

// start starts the server that was stopped.
func (s *server) start(addr netip.AddrPort) error {
	h, err := s.open(addr.String())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = h
	return nil
}

// stop ends the first server.
func (s *server) stop() error {
	s.mu.Lock()
	h := s.first
	s.first = nil
	s.mu.Unlock()
	err := h.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != nil {
		s.past = meter.Sum(s.past, h.counts())
	}
	return err
}

// close ends everything.
func (s *server) close() error {
	if s.stopped != nil {
		s.stopped()
		s.working.Wait()
	}
	return errors.Join(s.stop(), s.second.close())
}

func (h *host) counts() (c counts) {
	for _, rpc := range h.srv.Stats().RPCs {
		c = meter.Sum(c, counts{Frames: rpc.Frames(), Missed: rpc.Missed, Desync: rpc.Drops[ds.Desync]})
	}
	return c
}

// counts returns the counters of both servers and all previous ones.
func (s *server) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := meter.Sum(s.past, s.second.counts())
	if s.first != nil {
		c = meter.Sum(c, s.first.counts())
	}
	return c
}

// Usage is the resource usage of the process.
type Usage struct {
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"` // in use after a collection
	Files      int    `json:"files"`      // descriptors; 0 if unknown
}

// look collects garbage and returns the remaining usage.
func look() Usage {
	runtime.GC()
	runtime.GC() // objects of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Files = len(files) - 1 // without that of ReadDir
	}
	return u
}

// Permitted growth from round to round: heartbeats and reconnects continue while the usage is
// measured, and simnet reuses up to 1.5 MB of packet memory.
const (
	slackGoroutines = 8
	slackFiles      = 4
	slackHeap       = 5 << 19
	slackHeapShare  = 0.1
)

// grown lists the resources whose later usage is too high.
func (u Usage) grown(later Usage) (what []string) {
	if later.Goroutines > u.Goroutines+slackGoroutines {
		what = append(what, fmt.Sprintf("goroutines from %d to %d", u.Goroutines, later.Goroutines))
	}
	if later.Files > u.Files+slackFiles {
		what = append(what, fmt.Sprintf("file descriptors from %d to %d", u.Files, later.Files))
	}
	if float64(later.Heap) > float64(u.Heap)*(1+slackHeapShare)+slackHeap {
		what = append(what, fmt.Sprintf("the heap from %.1f to %.1f MB", mb(u.Heap), mb(later.Heap)))
	}
	return what
}

// patience is the time that closing connections and queued datagrams may need.
const patience = 3 * time.Second

// settled measures repeatedly until the usage is no longer too high, or patience is over.
func (u Usage) settled() Usage {
	later := look()
	for deadline := time.Now().Add(patience); len(u.grown(later)) > 0 && time.Now().Before(deadline); later = look() {
		time.Sleep(10 * time.Millisecond)
	}
	return later
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }

// String formats the usage.
func (u Usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MB heap, %d files", u.Goroutines, mb(u.Heap), u.Files)
}

// verifier compares decoded frames with the bots' traces. A bot starts at an unknown row, and its
// frames follow by sequence number. For each player, verifier keeps the start rows that agree with
// all frames so far. It is safe for concurrent use; the frames of one player arrive one at a time.
type verifier struct {
	traces           []*trace.Trace
	good, mismatched atomic.Uint64

	mu      sync.Mutex
	players map[*ds.Player][]begin
}

// begin is a possible row of sequence number 0.
type begin struct {
	trace *trace.Trace
	row   uint64
}

func newVerifier(traces []*trace.Trace) *verifier {
	return &verifier{traces: traces, players: map[*ds.Player][]begin{}}
}

// Frame is a handler of the server.
func (v *verifier) Frame(p *ds.Player, f ds.Frame[*schema.Frame]) {
	v.mu.Lock()
	possible := v.players[p]
	v.mu.Unlock()
	if len(possible) > 0 {
		possible = slices.DeleteFunc(possible, func(b begin) bool {
			return !f.Value.Equal(b.trace.At(int(b.row + f.Seq)))
		})
	} else {
		possible = v.find(f)
	}
	v.mu.Lock()
	v.players[p] = possible
	v.mu.Unlock()
	if len(possible) > 0 {
		v.good.Add(1)
	} else {
		v.mismatched.Add(1)
	}
}

// Left removes a player.
func (v *verifier) Left(p *ds.Player, _ error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.players, p)
}

// Counts returns the numbers of correct and wrong frames.
func (v *verifier) Counts() (good, mismatched uint64) { return v.good.Load(), v.mismatched.Load() }

func (v *verifier) find(f ds.Frame[*schema.Frame]) (found []begin) {
	for _, t := range v.traces {
		rows := uint64(len(t.Frames))
		for row := range t.Frames {
			if f.Value.Equal(&t.Frames[row]) {
				found = append(found, begin{t, (uint64(row) + rows - f.Seq%rows) % rows})
			}
		}
	}
	return found
}
