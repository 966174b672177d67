package ds

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// Server takes the RPCs of its players. Its methods are safe for concurrent
// use.
type Server struct {
	cfg     Config
	ln      *transport.Listener
	shards  []*shard
	queue   queue
	buffers buffers

	mu      sync.Mutex
	rpcs    map[string]*rpc
	sources map[string]source // of downstreams

	panics    atomic.Uint64 // that were recovered
	silent    bool          // there is neither a Config.Logger nor a Config.PanicHandler
	profiling atomic.Uint64 // one of how many payloads is measured, and above 32 bits the runs that there were
	leaving   atomic.Bool   // Shutdown was called
	calls     atomic.Int64  // of Joined and Left that wait for Poll
	peopled   atomic.Int32  // shards that may have players, or get some
	drained   chan struct{}
	drainOnce sync.Once
	serving   atomic.Bool
	served    chan struct{} // closed when Serve returns
}

// Listen opens the server's UDP socket on addr, "127.0.0.1:7777" say. Other
// addresses than loopback need [Config.Key].
func Listen(addr string, cfg Config) (*Server, error) {
	silent := cfg.Logger == nil && cfg.PanicHandler == nil
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ln, err := transport.Listen(addr, transport.Config{
		Network:  cfg.Network,
		Key:      cfg.Key,
		Addrs:    cfg.Addrs,
		Suites:   cfg.Suites,
		Insecure: cfg.Insecure,
		Timeout:  cfg.Timeout,
		Tick:     cfg.tick(),
		MaxConns: cfg.MaxPlayers,
		Shards:   cfg.Shards,
		KeyLog:   cfg.KeyLog,
		Logger:   cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	s := &Server{cfg: cfg, silent: silent, ln: ln, rpcs: map[string]*rpc{}, drained: make(chan struct{}), served: make(chan struct{})}
	for i := range ln.Shards() {
		s.shards = append(s.shards, newShard(s, i))
	}
	s.peopled.Store(int32(len(s.shards)))
	s.queue.share.limit = cfg.QueueBytes
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.ln.Addr() }

// KernelDrops returns the number of datagrams that the kernel dropped because the server did not
// read them in time. It reports false where that is not known: after Close, and everywhere but on Linux.
func (s *Server) KernelDrops() (n uint64, ok bool) { return s.ln.KernelDrops() }

// Shards is how many goroutines Serve has: Config.Shards, or 1 where the network
// cannot spread datagrams.
func (s *Server) Shards() int { return len(s.shards) }

// Players gives each player who is connected now, once, in no order. Who joins or
// leaves in the meantime may be among them or not.
func (s *Server) Players() iter.Seq[*Player] {
	return func(yield func(*Player) bool) {
		for _, h := range s.shards {
			for _, p := range h.list() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Serve receives until ctx is done or Close is called; it then tells the
// players, and returns nil. An error is one of a socket.
func (s *Server) Serve(ctx context.Context) error {
	if s.serving.CompareAndSwap(false, true) {
		defer close(s.served)
	}
	handlers := make([]transport.Handler, len(s.shards))
	for i, h := range s.shards {
		handlers[i] = h
	}
	if err := s.ln.Serve(ctx, handlers...); err != nil {
		return fmt.Errorf("ds: %w", err)
	}
	return nil
}

// Close ends Serve, waits for it and closes the socket. It may be called more
// than once, but not from a handler that Serve runs, which it would wait for:
// end Serve's context there.
func (s *Server) Close() error { return s.ln.Close() }

// Poll runs the handlers of what arrived since the last call, in order, on the
// caller's goroutine, and gives their number. It is for servers with
// [Config.Poll] and for one goroutine at a time. With [Config.JitterBuffer] it is a
// tick: after what arrived, the handlers of the frames whose time has come run.
//
// A panic in a handler does not end Poll: see [Config.PanicHandler]. If PanicHandler itself panics,
// or a handler calls runtime.Goexit, Poll ends, and the next one begins with what is left.
func (s *Server) Poll() int {
	n := s.queue.drain() + s.buffers.release(time.Now()) // what a Poll that did not return has left
	s.buffers.begin()                                    // before Joined of their players is called
	n += s.queue.run()
	return n + s.buffers.release(time.Now())
}

// register adds an RPC.
func (s *Server) register(r *rpc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.schema.RPC()
	if s.rpcs[name] != nil {
		return fmt.Errorf("ds: %s is handled already", name)
	}
	s.rpcs[name] = r
	return nil
}

func (s *Server) lookup(name string) (*rpc, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rpcs[name]; r != nil {
		return r, nil
	}
	return nil, slices.Sorted(maps.Keys(s.rpcs))
}

// run calls f, which is Joined or Left of the game, in Poll or at once.
func (s *Server) run(p *Player, f func()) {
	if s.cfg.Poll {
		s.calls.Add(1)
		s.queue.push(call(func() { s.calls.Add(-1); s.guard(p, f) }))
		return
	}
	apart(func() { s.guard(p, f) })
}
