package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/gate"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Listener serves many connections over one packet connection. Its methods are safe for concurrent use,
// and may be called from inside the [Handler].
type Listener struct {
	loop
	cfg      Config
	log      *slog.Logger
	serving  atomic.Bool // Serve or Close has taken the packet connection
	handler  Handler
	counters listenerCounters
	pokes    pokes

	// Only the loop touches these.
	gate    *gate.Gate
	conns   map[netip.AddrPort]*Conn // open ones, by their clients' addresses
	ids     map[uint64]*Conn         // all, by session id
	clients map[uint64]*Conn         // open ones, by client id
	pending map[gate.Hash]*Conn      // those whose handshake is not over, by their hellos
	guests  map[uint64]*Conn         // the same, by client id
	timers  timers
	start   time.Time
	hints   gate.Bucket
	buffers session.Buffers
	out     [wire.HelloSize]byte // an answer to somebody without a connection
}

// hintRate is how many answers that nobody can rely on a listener sends at most, over all addresses.
var hintRate = gate.PerSecond(100, 100)

// Listen opens addr ("host:port"; port 0 is any free one). Nothing is read until [Listener.Serve].
// On an address that others can reach it needs a [Config.Key], else the error is [ErrNoKey].
func Listen(addr string, cfg Config) (*Listener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Tick == OnWake {
		return nil, errors.New("transport: Config.Tick is OnWake, which is for dialed connections only")
	}
	pc, err := cfg.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	g, err := newGate(cfg, pc.LocalAddr())
	if err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	l := &Listener{
		cfg:     cfg,
		log:     cfg.Logger,
		gate:    g,
		conns:   make(map[netip.AddrPort]*Conn),
		ids:     make(map[uint64]*Conn),
		clients: make(map[uint64]*Conn),
		pending: make(map[gate.Hash]*Conn),
		guests:  make(map[uint64]*Conn),
		start:   time.Now(),
	}
	l.loop = newLoop(pc, cfg.Tick, listenerBatch, &l.counters.sent)
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
		Key: key, Good: good, Suites: cfg.Suites, Started: time.Now(), AnyAge: key.Equal(token.Development()),
		Each: gate.PerSecond(cfg.HandshakesEach, 2*cfg.HandshakesEach),
		All:  gate.PerSecond(cfg.Handshakes, 2*cfg.Handshakes),
	}), nil
}

// Serve accepts connections and calls h, all in the calling goroutine, until ctx is done or
// [Listener.Close] is called; then it closes every connection, tells the peers, and returns nil. Any other end
// is an error of the packet connection. A listener serves once.
func (l *Listener) Serve(ctx context.Context, h Handler) error {
	if !l.serving.CompareAndSwap(false, true) {
		return errors.New("transport: the listener is closed or serves already")
	}
	defer close(l.done)
	defer context.AfterFunc(ctx, l.stop)()
	l.handler = h
	err := l.run(l)
	l.closeAll(err)
	return errors.Join(err, l.pc.Close())
}

// Close makes Serve return and waits until it has, so it must not be called from inside the handler: there,
// end Serve's context. Closing again does no harm.
func (l *Listener) Close() error {
	l.stop()
	if l.serving.CompareAndSwap(false, true) {
		defer close(l.done)
		return l.pc.Close()
	}
	<-l.done
	return nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() netip.AddrPort { return l.pc.LocalAddr() }

// Stats returns what the listener has counted.
func (l *Listener) Stats() ListenerStats { return l.counters.snapshot() }

// receive takes a datagram from anybody.
func (l *Listener) receive(now time.Time, d datagram) {
	l.counters.received.Add(1)
	l.counters.receivedBytes.Add(uint64(len(d.b)))
	form, err := wire.FormOf(d.b)
	switch {
	case err != nil:
		l.count(session.Malformed)
	case form == wire.HandshakeForm:
		l.unsealed(now, d)
	default:
		l.sealed(now, d)
	}
}

// unsealed takes a handshake datagram.
func (l *Listener) unsealed(now time.Time, d datagram) {
	t, err := wire.ParseType(d.b)
	switch {
	case err != nil:
		l.count(session.Malformed)
	case t == wire.HelloType:
		l.hello(now, d.from, d.b)
	default:
		l.count(session.Unexpected)
	}
}

// sealed takes a datagram that belongs to a session, or says so.
func (l *Listener) sealed(now time.Time, d datagram) {
	h, err := wire.ParseHeader(d.b)
	if err != nil {
		l.count(session.Malformed)
		return
	}
	c := l.lookup(d.from, h)
	if c == nil {
		if h.Kind != wire.CloseKind { // its second copy is no surprise
			l.unknown(now, d, h)
		}
		return
	}
	r := c.input(now, d.from, d.b)
	l.count(r.verdict)
	l.admit(c, r.state)
	if r.state == session.Open {
		l.locate(c, r.remote)
	}
	c.deliver(now, r, l.handler)
	l.settle(c)
}

// lookup returns the connection that a datagram names, or that has its address; or nil.
func (l *Listener) lookup(from netip.AddrPort, h wire.Header) *Conn {
	if h.Long {
		return l.ids[h.ID]
	}
	return l.conns[from]
}

// unknown counts a datagram of no session, and says so to its sender, unless that would be more than it sent, or
// was done too often lately.
func (l *Listener) unknown(now time.Time, d datagram, h wire.Header) {
	l.counters.unknownSession.Add(1)
	if len(d.b) >= wire.UnknownSize(h) && l.mayHint(now) {
		l.send(wire.AppendUnknown(l.out[:0], wire.Unknown{Echo: h}), d.from)
	}
}

// mayHint reports whether one more answer may be sent that nobody can rely on.
func (l *Listener) mayHint(now time.Time) bool {
	return l.hints.Take(max(now.Sub(l.start), 0), hintRate)
}

// send sends an answer that belongs to no session.
func (l *Listener) send(b []byte, to netip.AddrPort) {
	l.outbox.send(b, to, nil)
}

func (l *Listener) count(v session.Verdict) { l.counters.verdicts[v].Add(1) }
