package ds

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Listen opens the server's UDP socket on addr, such as "127.0.0.1:7777". Addresses other than
// loopback require [Config.Key].
func Listen(addr string, cfg Config) (*Server, error) {
	silent := cfg.Logger == nil && cfg.PanicHandler == nil
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
	ln, err := transport.Listen(addr, transport.Config{
		ReliableQueue: cfg.ReliableQueue, TotalReliableQueue: cfg.TotalReliableQueue,
		Admit:   admit,
		Network: cfg.Network,
		Key:     cfg.Key, OtherKeys: cfg.OtherKeys, Route: cfg.Route, ServerID: cfg.ServerID,
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
	s.queue.quota.limit = cfg.QueueBytes
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() netip.AddrPort { return s.ln.Addr() }

// SetKeys replaces [Config.Key] and [Config.OtherKeys] while the server runs. Players stay
// connected, whatever key their token is of. To rotate keys, set the old and the new one, issue
// tokens with the new one, and remove the old one when its last token has expired. If SetKeys
// returns an error, the keys have not changed.
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

// Shards returns the number of shards: Config.Shards, or 1 if the network cannot spread datagrams.
func (s *Server) Shards() int { return len(s.shards) }

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

// Serve receives until ctx is done or Close is called. Then it closes the connections, tells
// the players, and returns nil. If a socket fails, it returns the error of the socket.
func (s *Server) Serve(ctx context.Context) error {
	if s.serving.CompareAndSwap(false, true) {
		defer close(s.served)
		defer s.takePart(ctx)()
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

// Shutdown ends Serve without losing data. It refuses new players (session.ErrDraining), whose
// tokens are not used up, tells the connected ones, and waits until each player has received all
// reliable messages, the player's own reliable messages have arrived, its requests are answered,
// all streams are over, and the player has left. With [Config.Poll] it also waits until the game
// has polled everything that arrived. Then, or when ctx is done, it closes the server like
// [Server.Close]; in the second case it returns the error of ctx. Clients leave by themselves and
// reconnect when a server is there again. What handlers send meanwhile may be lost. Like Close, it
// must not be called from a handler.
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

// refuseJoins makes the server refuse new players, before their tokens are used up, and tells the
// fleet.
func (s *Server) refuseJoins() {
	s.ln.Drain()
	if s.member != nil {
		s.member.Changed()
	}
}

// Poll runs the handlers of everything that arrived since the last call, in order, on the caller's
// goroutine, and returns their number. It is for servers with [Config.Poll], and for one goroutine
// at a time. For RPCs with a [JitterBuffer] each call is a tick: Poll first runs the handlers of
// what arrived, then those of the frames that the jitter buffers release for this tick.
//
// A panic in a handler does not end Poll: see [Config.PanicHandler]. If PanicHandler itself panics,
// or a handler calls runtime.Goexit, Poll ends, and the next call continues with the rest.
func (s *Server) Poll() int {
	if s.polls != nil {
		s.polled++
		s.polls.tick(s, time.Now(), replication.TickTime(s.polled, s.cfg.TickHz))
	}
	n := s.queue.drain() + s.buffers.release(time.Now()) // the rest of a Poll that did not return
	s.buffers.begin()                                    // before Joined of their players is called
	n += s.queue.run()
	return n + s.buffers.release(time.Now())
}

// Events returns the last events of sessions, at most 256, the newest first: who joined, who left
// and why, and who was refused. Stats.Events counts all.
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
		h.mu.Lock()
		out.Acks.Messages += h.acks.Messages
		out.Acks.Bytes += h.acks.Bytes
		out.Acks.Piggybacked += h.acks.Piggybacked
		out.Acks.AEADBytes += h.acks.AEADBytes
		addDrops(&out.Drops, &h.drops)
		h.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		for _, reliable := range []bool{false, true} {
			st := RPCStats{RPC: name, Reliable: reliable}
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
