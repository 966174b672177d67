package ds

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/transport"
)

// Server takes the RPCs of its players. Its methods are safe for concurrent
// use.
type Server struct {
	cfg   Config
	ln    *transport.Listener
	queue queue

	mu    sync.Mutex // guards the next three
	rpcs  map[string]*rpc
	acks  AckStats
	drops [drops]uint64

	leaving   atomic.Bool // Shutdown was called
	drained   chan struct{}
	drainOnce sync.Once
	serving   atomic.Bool
	served    chan struct{} // closed when Serve returns

	players map[*Player]struct{} // of Serve's goroutine alone, as the rest
	due     []*Player            // have frames to ack
	acked   time.Time            // when acks were sent
	buf     []byte
}

// Listen opens the server's UDP socket on addr, "127.0.0.1:7777" say. Other
// addresses than loopback need [Config.Key].
func Listen(addr string, cfg Config) (*Server, error) {
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
		Logger:   cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	s := &Server{cfg: cfg, ln: ln, rpcs: map[string]*rpc{}, players: map[*Player]struct{}{}, drained: make(chan struct{}), served: make(chan struct{})}
	s.queue.share.limit = cfg.QueueBytes
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.ln.Addr() }

// Serve receives until ctx is done or Close is called; it then tells the
// players, and returns nil. An error is one of the socket.
func (s *Server) Serve(ctx context.Context) error {
	if s.serving.CompareAndSwap(false, true) {
		defer close(s.served)
	}
	if err := s.ln.Serve(ctx, (*events)(s)); err != nil {
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
// [Config.Poll] and for one goroutine at a time.
func (s *Server) Poll() int { return s.queue.run() }

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

// events is the server as the transport sees it: its methods are called one at
// a time, from the goroutine of Serve.
type events Server

var _ transport.Handler = (*events)(nil)

func player(c *transport.Conn) *Player { return c.Value.(*Player) }

func (e *events) server() *Server { return (*Server)(e) }

// Opened greets a player.
func (e *events) Opened(c *transport.Conn) {
	s := e.server()
	p := &Player{server: s, conn: c, seal: c.Suite().Overhead()}
	c.Value = p
	if s.leaving.Load() {
		c.Leave(leavingReason)
		return
	}
	s.players[p] = struct{}{}
	s.queue.joined(1)
	if s.cfg.Joined != nil {
		s.run(func() { s.cfg.Joined(p) })
	}
}

// Closed parts from one, and lets go of what only receiving needs: the game may
// keep the player.
func (e *events) Closed(c *transport.Conn, err error) {
	s := e.server()
	p := player(c)
	if _, joined := s.players[p]; !joined {
		return
	}
	delete(s.players, p)
	p.bindings = nil
	s.queue.joined(-1)
	if s.cfg.Left != nil {
		s.run(func() { s.cfg.Left(p, err) })
	}
}

// Datagram takes a message of the unreliable channel.
func (e *events) Datagram(c *transport.Conn, b []byte, at time.Time) {
	player(c).receive(b, at, false)
}

// Message takes one of the reliable channel.
func (e *events) Message(c *transport.Conn, b []byte, at time.Time) {
	player(c).receive(b, at, true)
}

// Tick sends the acks that are due.
func (e *events) Tick(now time.Time) {
	s := e.server()
	if now.Sub(s.acked) < s.cfg.ackInterval()-s.cfg.tick()/2 {
		return // ticks are not quite punctual, hence the half
	}
	s.acked = now
	for _, p := range s.due {
		p.due = false
		s.ack(p)
	}
	if s.leaving.Load() {
		s.drain()
	}
	clear(s.due) // let go of players
	s.due = s.due[:0]
}

// ack sends the acks of all RPCs of a player, in one datagram unless that is too
// small.
func (s *Server) ack(p *Player) {
	for {
		s.buf = p.appendAcks(append(s.buf[:0], byte(control.Acks)))
		if len(s.buf) == 1 || p.conn.Send(s.buf) != nil {
			return // nothing more to say, or gone by now; acks may be lost
		}
		s.mu.Lock()
		s.acks.Messages++
		s.acks.Bytes += uint64(len(s.buf))
		s.acks.SealBytes += uint64(p.seal)
		s.mu.Unlock()
	}
}

// run has f run where handlers run.
func (s *Server) run(f func()) {
	if s.cfg.Poll {
		s.queue.push(call(f))
		return
	}
	f()
}
