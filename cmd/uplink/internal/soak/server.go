package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
)

// server is a dedicated server that restarts at the same address.
type server struct {
	key     token.Key
	traces  []*trace.Trace
	check   *verifier
	limit   int // players
	network transport.Network

	srv    *ds.Server
	served chan error // receives the result of Serve, then is closed
	addr   string
	past   counts // of previous servers
}

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
	for range attempts {
		s.addr = fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if err = s.start(); err == nil {
			break
		}
	}
	return s, err
}

func (s *server) start() error {
	srv, err := ds.Listen(s.addr, ds.Config{
		Key: s.key, MaxPlayers: s.limit + 1, Network: s.network,
		Left: s.check.Left,
	})
	if err != nil {
		return err
	}
	if err := ds.HandleSchema(srv, s.traces[0].Schema, s.check.Frame); err != nil {
		return errors.Join(err, srv.Close())
	}
	served := make(chan error, 1)
	s.srv, s.served = srv, served
	go func() {
		defer close(served)
		served <- srv.Serve(context.Background())
	}()
	return nil
}

func (s *server) stop() error {
	err := errors.Join(s.srv.Close(), <-s.served)
	s.past = s.counts()
	return err
}

// counts returns the counters of this server and all previous ones.
func (s *server) counts() counts {
	c := s.past
	for _, rpc := range s.srv.Stats().RPCs {
		c = meter.Sum(c, counts{rpc.Frames(), rpc.Missed, rpc.Drops[ds.Desync]})
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
