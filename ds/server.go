package ds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/fleetmember"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
)

// This file declares the state of a server, and the lock or goroutine that guards each part.

// Server receives the RPCs of its players and replicates worlds to them. Its methods are safe for
// concurrent use.
type Server struct {
	cfg     Config
	ln      *endpoint.Listener
	shards  []*shard
	queue   queue
	buffers jitterBuffers
	events  events
	polls   *tickClock // nil without Config.TickHz
	polled  uint64     // number of calls of Poll; used only by the goroutine that calls it

	mu     sync.Mutex         // guards rpcs and worlds
	rpcs   map[string]*rpc    // by name
	worlds map[string]*served // by name

	predicts   atomic.Bool                          // an RPC is registered with ForPrediction
	panics     atomic.Uint64                        // number of recovered panics
	asked      atomic.Uint64                        // number of requests of players
	streamed   [2]atomic.Uint64                     // bytes of streams: sent, received
	called     [2]atomic.Uint64                     // calls of clients' RPCs: their number, bytes of their payloads
	streaming  sync.WaitGroup                       // running calls of Config.Hooks.OnStream
	silent     bool                                 // neither Config.Logger nor Config.Hooks.PanicHandler is set
	profiling  atomic.Uint64                        // low 32 bits: mean payloads per measured one, 0 for none; high 32 bits: run
	leaving    atomic.Bool                          // Shutdown was called
	draining   atomic.Bool                          // Drain was called
	keys       atomic.Pointer[[]token.Key]          // the first one issues tokens for handovers
	outcome    atomic.Pointer[func(*Player, error)] // set by Drain; called with the outcome of each handover
	calls      atomic.Int64                         // number of callbacks of sessions that wait for Poll
	member     *fleetmember.Member                  // nil without Config.Fleet
	membership sync.WaitGroup                       // running calls of member.Run
	addrs      atomic.Pointer[[]netip.AddrPort]     // addresses of SetAddrs
	populated  atomic.Int32                         // number of shards that have players or may get some
	drained    chan struct{}                        // closed when Shutdown can stop waiting
	drainOnce  sync.Once
	serving    atomic.Bool
	served     chan struct{} // closed when Serve returns
}

// Listen opens the server's UDP socket on addr, such as "127.0.0.1:7777". Addresses other than
// loopback require [Config.Key].
func Listen(addr string, cfg Config) (*Server, error) {
	silent := cfg.Logger == nil && cfg.Hooks.PanicHandler == nil
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, silent: silent, rpcs: map[string]*rpc{}, worlds: map[string]*served{}, drained: make(chan struct{}), served: make(chan struct{})}
	if cfg.Poll && cfg.TickHz != 0 {
		s.polls = newTickClock("polls", cfg.TickHz, replication.Interval(cfg.TickHz))
	}
	admit, err := s.joinFleet()
	if err != nil {
		return nil, err
	}
	ln, err := endpoint.Listen(addr, endpoint.Config{
		ReliableQueue: cfg.Limits.ReliableQueue, TotalReliableQueue: cfg.Limits.TotalReliableQueue,
		Admit:   admit,
		Network: cfg.Network,
		Key:     cfg.Key, OtherKeys: cfg.OtherKeys, Route: cfg.Transport.Route, ServerID: cfg.Transport.ServerID,
		Addrs:    cfg.Addrs,
		Suites:   cfg.Transport.Suites,
		Insecure: cfg.Transport.Insecure,
		Timeout:  cfg.Transport.Timeout,
		Tick:     cfg.tick(),
		MaxConns: cfg.MaxPlayers,
		Shards:   cfg.Transport.Shards,
		KeyLog:   cfg.Transport.KeyLog,
		Logger:   cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	s.ln = ln
	for i := range ln.Shards() {
		s.shards = append(s.shards, &shard{server: s, index: i, start: time.Now(), players: map[*Player]struct{}{}})
	}
	keys := []token.Key{token.Development()}
	if !cfg.Key.IsZero() {
		keys = append([]token.Key{cfg.Key}, cfg.OtherKeys...)
	}
	s.keys.Store(&keys)
	s.populated.Store(int32(len(s.shards)))
	s.queue.quota.limit = cfg.Limits.QueueBytes
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() netip.AddrPort { return s.ln.Addr() }

// SetKeys replaces [Config.Key] and [Config.OtherKeys] while the server runs. Players stay
// connected, whichever key their token was issued with. To rotate keys, set the old and the new
// key, issue tokens with the new one, and remove the old one when its last token has expired. If
// SetKeys returns an error, the keys have not changed.
func (s *Server) SetKeys(keys ...token.Key) error {
	err := s.ln.SetKeys(keys...)
	if err == nil {
		keys = slices.Clone(keys)
		s.keys.Store(&keys)
	}
	return err
}

// SetAddrs replaces [Config.Addrs] while the server runs, for a server whose public addresses are
// known only after Listen: an orchestrator may assign them late. Players stay connected. If
// SetAddrs returns an error, the addresses have not changed.
func (s *Server) SetAddrs(addrs ...netip.AddrPort) error {
	err := s.ln.SetAddrs(addrs...)
	if err == nil {
		addrs = slices.Clone(addrs)
		s.addrs.Store(&addrs)
	}
	return err
}

// Draining reports whether the server refuses new players, because [Server.Drain] or
// [Server.Shutdown] was called.
func (s *Server) Draining() bool { return s.leaving.Load() || s.draining.Load() }

// KernelDrops returns the number of datagrams that the kernel dropped because the server did not
// read them in time. It reports false where that is not known: after Close, and everywhere but on
// Linux.
func (s *Server) KernelDrops() (n uint64, ok bool) { return s.ln.KernelDrops() }

// Players returns an iterator over the connected players, in no order. Players who connect or
// disconnect during the iteration may be included or not.
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

// Serve receives until ctx is done or Close is called. Then it closes all connections, informs the
// clients, and returns nil. If a socket fails, it returns the error of the socket, and if another
// server of the fleet has its name, [fleet.ErrTaken].
func (s *Server) Serve(ctx context.Context) error {
	if s.serving.CompareAndSwap(false, true) {
		defer close(s.served)
		taking, stop := s.takePart(ctx)
		defer stop()
		ctx = taking
	}
	handlers := make([]endpoint.Handler, len(s.shards))
	for i, h := range s.shards {
		handlers[i] = h
	}
	if err := s.ln.Serve(ctx, handlers...); err != nil {
		return fmt.Errorf("ds: %w", err)
	}
	if err := context.Cause(ctx); errors.Is(err, fleet.ErrTaken) {
		return fmt.Errorf("ds: Config.Fleet: %w", err)
	}
	return nil
}

// Close ends Serve, waits for it and closes the socket. It can be called more than once, but not
// from a handler that Serve runs, since it waits for that: end Serve's context there.
func (s *Server) Close() error {
	err := s.ln.Close()
	s.streaming.Wait()
	s.membership.Wait()
	s.mu.Lock()
	worlds := slices.Collect(maps.Values(s.worlds))
	s.mu.Unlock()
	for _, w := range worlds {
		w.spreader.close()
	}
	return err
}

// Shutdown ends Serve without losing data. It refuses new players (transport.ErrDraining), whose
// tokens are not used up, and informs the connected clients. It waits until each player has
// received all reliable messages, the player's own reliable messages have arrived, its requests are
// answered, all its streams have ended, and the player has left. With [Config.Poll] it also waits
// until the game has polled everything that arrived. Then, or when ctx is done, it closes the
// server like [Server.Close]; in the second case it returns the error of ctx. Clients leave by
// themselves, and reconnect when a server runs again. Messages that handlers send during Shutdown
// may be lost. Like Close, it must not be called from a handler.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	s.refuseJoins()
	var cut error
	if s.serving.Load() {
		select {
		case <-s.drained:
		case <-s.served:
		case <-ctx.Done():
			cut = fmt.Errorf("ds: shut down before all players had left: %w", context.Cause(ctx))
		}
	}
	return errors.Join(cut, s.Close())
}

// refuseJoins makes the server refuse new players before their tokens are used up, and announces
// this to the fleet.
func (s *Server) refuseJoins() {
	s.ln.Drain()
	if s.member != nil {
		s.member.Changed()
	}
}

// Poll runs the handlers of everything that arrived since the last call, in order, on the caller's
// goroutine, and returns their number. It is for servers with [Config.Poll], and for one goroutine
// at a time. For RPCs with a [JitterBuffer] each call is a tick: Poll first runs the handlers of
// everything else, and then those of the frames that the jitter buffers release for this tick.
//
// A panic in a handler does not end Poll: see [Hooks.PanicHandler]. If PanicHandler itself panics,
// or a handler calls runtime.Goexit, Poll ends, and the next call continues with the rest.
func (s *Server) Poll() int {
	if s.polls != nil {
		s.polled++
		s.polls.tick(s, time.Now(), replication.TickTime(s.polled, s.cfg.TickHz))
	}
	n := s.queue.drain() + s.buffers.release(time.Now()) // rest of an earlier Poll that did not return
	s.buffers.begin()                                    // before Joined of their players is called
	n += s.queue.run()
	return n + s.buffers.release(time.Now())
}

// Events returns the last events of sessions, at most 256, the newest first: for example players
// who joined, left or were refused, with the reason. Stats.Events contains the counts of all
// events.
func (s *Server) Events() []Event { return s.events.newest() }

// Stats returns the server's counts.
func (s *Server) Stats() Stats {
	out := Stats{Panics: s.panics.Load(), Requests: s.asked.Load(), Events: s.events.total(), Transport: s.ln.Stats()}
	out.StreamBytesSent, out.StreamBytesReceived = s.streamed[0].Load(), s.streamed[1].Load()
	out.Calls, out.CallBytes = s.called[0].Load(), s.called[1].Load()
	if s.member != nil {
		f := s.member.Stats()
		out.Fleet = &f
	}
	s.mu.Lock()
	worlds := maps.Clone(s.worlds)
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		out.Replication = append(out.Replication, worlds[name].stats())
	}
	for _, h := range s.shards {
		h.acks.addTo(&out.Acks)
		h.mu.Lock()
		addDrops(&out.Drops, &h.drops)
		h.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		for _, reliable := range []bool{false, true} {
			st := RPCStats{Payloads: endpoint.Payloads{RPC: name, Reliable: reliable}}
			for _, h := range s.rpcs[name].shards {
				h.counts(reliable).update(func(total *RPCStats) { st.add(total) })
			}
			if !reliable || st.Messages != 0 || st.PriorFallbacks != 0 || st.Drops != [drops]uint64{} {
				out.RPCs = append(out.RPCs, st)
			}
		}
	}
	s.buffers.addTo(out.RPCs, s.rpcs)
	return out
}

// maxCalls is the number of calls of Joined and Left that may wait for Poll before connections are
// refused: clients could otherwise add to them without bound. Calls for players who are connected
// are added in any case.
func (s *Server) maxCalls() int64 {
	return 2 * int64(cmp.Or(s.cfg.MaxPlayers, endpoint.DefaultMaxConns))
}

func (s *Server) countRPCs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rpcs)
}

// lookup returns the RPC with a name, or nil and the names of all registered RPCs.
func (s *Server) lookup(name string) (*rpc, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rpcs[name]; r != nil {
		return r, nil
	}
	return nil, slices.Sorted(maps.Keys(s.rpcs))
}

// worldOf returns the world with a name.
func (s *Server) worldOf(name string) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.worlds[name]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("ds: the server has no world %s, but %s: declare it by NewWorld, with the server", name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.worlds)), ", "), "none"))
}

// bindingMemory returns the approximate maximum size of the bindings of a player in bytes: twice
// the size of bindings of all RPCs with the server's fields.
func (s *Server) bindingMemory() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, r := range s.rpcs {
		sum += memoryOf(r.schema, true, s.cfg.Tuning.Ring)
	}
	return max(2*sum, spareMemory)
}

// Profile starts a new profile of each RPC. every is the mean number of payloads per measured
// payload; which payloads are measured is random within each shard. [Server.Profiles] returns the
// profiles. With 0, as at the start, no payload is measured, and the last profile is kept. A
// measured payload costs about twice as much to receive as another. While no payload is measured
// there is almost no cost.
func (s *Server) Profile(every int) {
	n := uint64(min(max(every, 0), math.MaxInt32))
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.profiling.Load() >> 32
	if n != 0 {
		run++
	}
	s.profiling.Store(run<<32 | n)
}

// Profiles returns copies of the profiles that the last call of Profile with a number other than 0
// started, by name of the RPC.
func (s *Server) Profiles() []RPCProfile {
	run := s.profiling.Load() >> 32
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]RPCProfile, 0, len(s.rpcs))
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		r := s.rpcs[name]
		sum := rpcdelta.NewProfile(r.schema)
		for _, h := range r.shards {
			p := &h.profiler
			p.mu.Lock()
			if p.profile != nil && p.run == run {
				sum.Add(p.profile)
			}
			p.mu.Unlock()
		}
		out = append(out, RPCProfile{RPC: name, Schema: r.schema, Profile: *sum})
	}
	return out
}

// Drain hands all players over to other servers, without an interruption, and closes the server. It
// refuses new players (transport.ErrDraining), whose tokens are not used up, and announces this in
// the fleet's directory. It hands each player over to the server that choose returns
// ([Player.Handover]), including players whose handshake had begun. It waits until all of them have
// left and, with [Config.Poll], until the game has polled everything. Then it closes the server
// like [Server.Close].
//
// If choose is nil, Drain chooses a server with the same labels from the fleet's directory, by
// load; the handover has no payload. choose is called again after a second if its error wraps
// transport.ErrServerBusy, for example while the directory cannot be read, or if the client cannot
// reach the other server. If choose returns another error, for example without [Config.Fleet], or
// the client supports no handovers, the client is asked to leave as by [Server.Shutdown]. The
// session of a client that does not switch within 30 s ends.
//
// If ctx is done before, Drain ends the remaining sessions and returns the error of ctx. It calls
// choose on the caller's goroutine, for about 100 players a second. Call it at most once and, like
// Close, not from a handler.
func (s *Server) Drain(ctx context.Context, choose func(*Player) (Target, HandoverConfig, error)) error {
	if choose == nil {
		choose = s.otherServers(ctx)
	}
	d := &drain{server: s, choose: choose, next: map[*Player]time.Time{}}
	outcome := func(p *Player, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.outcomes = append(d.outcomes, drained{p, err})
	}
	s.outcome.Store(&outcome)
	s.draining.Store(true)
	s.refuseJoins()
	s.cfg.Logger.Info("draining", "players", s.Stats().Transport.Open)
	var cut error
	if s.serving.Load() {
		cut = d.run(ctx)
	}
	return errors.Join(cut, s.Close())
}
