package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/udp"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Listener serves many connections on one address, by one packet connection or several
// ([Config.Shards]). Its methods are safe for concurrent use. All but Close may be called by a
// [Handler].
type Listener struct {
	common
	pcs     []transport.PacketConn
	shards  []*shard      // one for each of pcs
	serving atomic.Bool   // Serve or Close owns the packet connections
	done    chan struct{} // closed when Serve has ended

	development bool // the key is token.Development

	flushMu  sync.Mutex
	flushing sync.WaitGroup // goroutines of Flush
}

// Listen opens addr ("host:port"; port 0 selects a free port). The host 0.0.0.0 selects every IPv4
// address of the machine, and :: or an empty host every address of both families. A port belongs to
// one listener: another one on it, in whatever process, is an error. Nothing is read before
// [Listener.Serve]. On addresses other than loopback, a [Config.Key] is required; without one the
// error is [token.ErrNoKey].
func Listen(addr string, cfg Config) (*Listener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Tick == OnWake {
		return nil, errors.New("transport: Config.Tick is OnWake, which is for dialed connections only")
	}
	keys, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	pcs, err := cfg.listen(addr)
	if err != nil {
		return nil, err
	}
	controller, err := newAdmission(cfg, keys, pcs[0].LocalAddr())
	if err != nil {
		return nil, errors.Join(err, closeAll(pcs))
	}
	l := &Listener{pcs: pcs, done: make(chan struct{}), development: isDevelopment(keys)}
	l.common = common{directory: newDirectory(), cfg: cfg, log: cfg.Logger, stop: l.stopShards, admission: controller, limits: session.NewLimits(cfg.ReliableQueue, cfg.TotalReliableQueue)}
	if cfg.Network == transport.UDP() && !udp.ReportsLocal && l.Addr().Addr().IsUnspecified() {
		cfg.Logger.Warn("answers may leave from another address than the one that was dialed: listen on one address", "local", l.Addr())
	}
	for _, pc := range pcs {
		s := newShard(&l.common, pc, len(pcs))
		s.flush = func() {
			defer l.flushing.Done()
			s.outbox.write()
		}
		l.shards = append(l.shards, s)
	}
	return l, nil
}

func closeAll(pcs []transport.PacketConn) (err error) {
	for _, pc := range pcs {
		err = errors.Join(err, pc.Close())
	}
	return err
}

func newAdmission(cfg Config, keys []token.Key, local netip.AddrPort) (*admission.Controller, error) {
	development := isDevelopment(keys)
	if development && !cfg.developmentAt(local) {
		const advice = "and set Config.Key, or listen on a loopback address such as 127.0.0.1"
		return nil, fmt.Errorf("listening on %v: %w, %s", local, token.ErrNoKey, advice)
	}
	servers, err := cfg.servers(development, local)
	if err != nil {
		return nil, err
	}
	perNetwork, total := float64(cfg.HandshakesPerNetwork), float64(cfg.Handshakes)
	return admission.New(admission.Config{
		Keys: keys, Server: servers, Route: cfg.Route, Suites: cfg.Suites, Wall: cfg.wall, Started: time.Now(), AnyAge: development,
		PerNetwork: ratelimit.Rate{PerSecond: perNetwork, Burst: 2 * perNetwork},
		Total:      ratelimit.Rate{PerSecond: total, Burst: 2 * total},
	}), nil
}

// SetKeys replaces [Config.Key] and [Config.OtherKeys]: from then on, the listener accepts tokens
// that one of these keys issued. Connections continue, whatever key their token is of, and used
// tokens stay used. To rotate keys, set the old and the new one, issue tokens with the new one, and
// remove the old one when its last token has expired. SetKeys may be called at any time, from any
// goroutine. If it returns an error, the keys have not changed.
func (l *Listener) SetKeys(keys ...token.Key) error {
	if err := checkKeys(keys, l.development); err != nil {
		return fmt.Errorf("transport: SetKeys: %w", err)
	}
	l.handshakes.Lock()
	defer l.handshakes.Unlock()
	l.admission.SetKeys(keys)
	return nil
}

// SetAddrs replaces [Config.Addrs], for a listener whose public addresses are known late. From then
// on, a token must name one of them; connections continue. SetAddrs may be called at any time, from
// any goroutine. If it returns an error, nothing has changed.
func (l *Listener) SetAddrs(addrs ...netip.AddrPort) error {
	cfg := l.cfg
	cfg.Addrs = append([]netip.AddrPort{}, addrs...) // not nil
	servers, err := cfg.servers(l.development, l.Addr())
	if err != nil {
		return fmt.Errorf("transport: SetAddrs: %w", err)
	}
	l.handshakes.Lock()
	defer l.handshakes.Unlock()
	l.admission.SetServer(servers)
	return nil
}

// Drain makes the listener refuse new clients from then on, with session.ErrDraining. That does not
// use up their tokens. Connections continue, and so do handshakes whose tokens have been used; see
// [Listener.Empty]. It may be called at any time, from any goroutine.
func (l *Listener) Drain() {
	l.handshakes.Lock()
	defer l.handshakes.Unlock()
	l.draining = true
}

// Empty reports whether there are no connections, and no handshakes whose tokens have been used: a
// listener that drains stays empty then.
func (l *Listener) Empty() bool { return l.empty() }

// Serve accepts connections and calls the handlers, one for each of [Listener.Shards], until ctx is
// done or [Listener.Close] is called. Then it closes every connection, notifies the peers, and
// returns nil. If a packet connection fails, Serve returns its error. All calls of a handler come
// from one goroutine that Serve starts. The network decides to which shard a connection belongs. A
// listener serves once.
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
		s.handler = handlers[i]
		shards.Add(1)
		go restartOnGoexit(func() {
			errs[i] = s.serve()
			shards.Done()
		})
	}
	shards.Wait()
	l.admits.Wait()
	return errors.Join(append(errs, closeAll(l.pcs))...)
}

// Close ends Serve and waits until it has returned, so it must not be called by a handler; cancel
// Serve's context there. It may be called again.
func (l *Listener) Close() error {
	l.stop()
	if l.serving.CompareAndSwap(false, true) {
		defer close(l.done)
		return closeAll(l.pcs)
	}
	<-l.done
	return nil
}

// minFlush is the number of datagrams for which Flush starts a goroutine.
const minFlush = 8

// Flush writes the datagrams that [Conn.Queue] has queued, in batches, and those of several shards
// at the same time.
func (l *Listener) Flush() {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	for _, s := range l.shards[1:] {
		if s.outbox.waiting() < minFlush {
			s.outbox.write()
		} else {
			l.flushing.Add(1)
			go s.flush()
		}
	}
	l.shards[0].outbox.write()
	l.flushing.Wait()
}

func (l *Listener) stopShards() {
	l.stopAsking()
	for _, s := range l.shards {
		s.stop()
	}
}

// Addr returns the local address of the listener.
func (l *Listener) Addr() netip.AddrPort { return l.pcs[0].LocalAddr() }

// Shards returns the number of shards: [Config.Shards], or 1 if the network cannot distribute
// datagrams.
func (l *Listener) Shards() int { return len(l.shards) }

// KernelDrops returns the number of datagrams that the kernel dropped because the listener did not
// read them in time. It reports false if that is unknown: after Close, and on systems other than
// Linux.
func (l *Listener) KernelDrops() (n uint64, ok bool) { return udp.KernelDrops(l.Addr().Port()) }

// Stats returns the counts of the listener.
func (l *Listener) Stats() transport.ListenerStats {
	var total transport.ListenerStats
	total.Conns, total.Open = l.counts()
	total.MaxConns = l.cfg.MaxConns
	for _, s := range l.shards {
		s.counters.addTo(&total)
	}
	return total
}
