package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
)

// server is a dedicated server that ends and comes back at the same address.
type server struct {
	key     token.Key
	traces  []*trace.Trace
	check   *verifier
	limit   int // players
	network transport.Network

	srv    *ds.Server
	served chan error // gets what Serve returns, and is closed
	addr   string
	past   counts // of those before it
}

// Where the server looks for a port: below those that systems give to sockets that ask for none in particular, so
// that no player gets it while the server is away.
const (
	firstPort = 20_000
	ports     = 10_000
	attempts  = 20
)

// counts is what servers counted.
type counts struct{ frames, missed, desync uint64 }

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

// stop ends the server, unless it has ended.
func (s *server) stop() error {
	err := errors.Join(s.srv.Close(), <-s.served)
	c := s.current()
	s.past.frames += c.frames
	s.past.missed += c.missed
	s.past.desync += c.desync
	return err
}

// current gives what the server that runs has counted.
func (s *server) current() (c counts) {
	st := s.srv.Stats()
	for i := range st.RPCs {
		c.frames += st.RPCs[i].Frames()
		c.missed += st.RPCs[i].Missed
		c.desync += st.RPCs[i].Drops[ds.Desync]
	}
	return c
}

// counts gives what all have counted.
func (s *server) counts() counts {
	c := s.current()
	return counts{frames: c.frames + s.past.frames, missed: c.missed + s.past.missed, desync: c.desync + s.past.desync}
}

// Usage is what the process holds.
type Usage struct {
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"` // in use after a collection
	Files      int    `json:"files"`      // descriptors; 0 where the system does not tell
}

// look collects garbage and looks what is left.
func look() Usage {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Files = len(files) - 1 // without the one that reads the folder
	}
	return u
}

// What a round may hold more than an earlier one: heartbeats and reconnections do not stand still while they are counted,
// and simnet keeps the memory of packets for later ones, 1.5 MB at most.
const (
	slackGoroutines = 8
	slackFiles      = 4
	slackHeap       = 5 << 19
	slackHeapShare  = 0.1
)

// grown says what a later usage has too much; empty if nothing.
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

// patience is how long what is on its way, connections that end and datagrams that wait, may hold more.
const patience = 3 * time.Second

// settled looks again while there is more than before, until it has been patient enough.
func (u Usage) settled() Usage {
	later := look()
	for deadline := time.Now().Add(patience); len(u.grown(later)) > 0 && time.Now().Before(deadline); later = look() {
		time.Sleep(10 * time.Millisecond)
	}
	return later
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }

// String gives the usage as text.
func (u Usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MB heap, %d files", u.Goroutines, mb(u.Heap), u.Files)
}
