package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/gate"
	"github.com/uplink-rpc/uplink/transport/internal/udp"
)

// Listener serves many connections on one address, by one packet connection or several ([Config.Shards]). Its
// methods are safe for concurrent use, and may be called from inside the [Handler].
type Listener struct {
	directory
	cfg     Config
	log     *slog.Logger
	shards  []*shard
	serving atomic.Bool   // Serve or Close has taken the packet connections
	done    chan struct{} // closed when Serve is over

	// handshakes is held during one, so that no two shards take the same token or the last place.
	handshakes sync.Mutex
	gate       *gate.Gate
}

// Listen opens addr ("host:port"; port 0 is any free one). Nothing is read until [Listener.Serve].
// On an address that others can reach it needs a [Config.Key], else the error is [token.ErrNoKey].
func Listen(addr string, cfg Config) (*Listener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Tick == OnWake {
		return nil, errors.New("transport: Config.Tick is OnWake, which is for dialed connections only")
	}
	pcs, err := cfg.listen(addr)
	if err != nil {
		return nil, err
	}
	g, err := newGate(cfg, pcs[0].LocalAddr())
	if err != nil {
		return nil, errors.Join(err, closeEach(pcs))
	}
	l := &Listener{directory: newDirectory(), cfg: cfg, log: cfg.Logger, done: make(chan struct{}), gate: g}
	for _, pc := range pcs {
		l.shards = append(l.shards, newShard(l, pc, len(pcs)))
	}
	return l, nil
}

// newGate returns the gate of a listener at that address.
func newGate(cfg Config, local netip.AddrPort) (*gate.Gate, error) {
	key, err := cfg.key(local)
	if err != nil {
		return nil, err
	}
	good, err := cfg.servers(key, local)
	if err != nil {
		return nil, err
	}
	return gate.New(gate.Config{
		Key: key, Good: good, Suites: cfg.Suites, Wall: cfg.wall, Started: time.Now(), AnyAge: key.Equal(token.Development()),
		Each: gate.PerSecond(cfg.HandshakesPerNetwork, 2*cfg.HandshakesPerNetwork),
		All:  gate.PerSecond(cfg.Handshakes, 2*cfg.Handshakes),
	}), nil
}

// Serve accepts connections and calls the handlers, one for each of [Listener.Shards], until ctx is done or
// [Listener.Close] is called; then it closes every connection, tells the peers, and returns nil. Any other end
// is an error of a packet connection. All calls of one handler come from one goroutine, which Serve
// starts; which shard a connection belongs to is decided when it begins, and nobody can tell
// before.
// A listener serves once.
func (l *Listener) Serve(ctx context.Context, handlers ...Handler) error {
	if len(handlers) != len(l.shards) {
		return fmt.Errorf("transport: Serve got %d handlers, and there are %d shards: it needs one for each", len(handlers), len(l.shards))
	}
	if !l.serving.CompareAndSwap(false, true) {
		return errors.New("transport: the listener is closed or serves already")
	}
	defer close(l.done)
	defer context.AfterFunc(ctx, l.stop)()
	errs := make([]error, len(l.shards))
	var shards sync.WaitGroup
	for i, s := range l.shards {
		s.serves(handlers[i])
		shards.Add(1)
		go outlast(func() {
			errs[i] = s.serve()
			shards.Done()
		})
	}
	shards.Wait()
	return errors.Join(append(errs, l.release())...)
}

// Close makes Serve return and waits until it has, so it must not be called from inside a handler: there,
// end Serve's context. Closing again does no harm.
func (l *Listener) Close() error {
	l.stop()
	if l.serving.CompareAndSwap(false, true) {
		defer close(l.done)
		return l.release()
	}
	<-l.done
	return nil
}

// stop makes Serve return soon.
func (l *Listener) stop() {
	for _, s := range l.shards {
		s.stop()
	}
}

// release closes the packet connections.
func (l *Listener) release() error {
	pcs := make([]PacketConn, len(l.shards))
	for i, s := range l.shards {
		pcs[i] = s.pc
	}
	return closeEach(pcs)
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() netip.AddrPort { return l.shards[0].pc.LocalAddr() }

// Shards returns how many shards there are: [Config.Shards], or 1 where the network cannot spread datagrams.
func (l *Listener) Shards() int { return len(l.shards) }

// KernelDrops returns the number of datagrams that the kernel dropped because the listener did not read them in
// time. It reports false where that is not known: on closed sockets, and everywhere but on Linux.
func (l *Listener) KernelDrops() (n uint64, ok bool) { return udp.KernelDrops(l.Addr().Port()) }

// Stats returns what the listener has counted.
func (l *Listener) Stats() ListenerStats {
	var total ListenerStats
	total.Conns, total.Open = l.counts()
	total.MaxConns = l.cfg.MaxConns
	for _, s := range l.shards {
		s.counters.addTo(&total)
	}
	return total
}
