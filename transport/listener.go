package transport

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

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
	conns      map[netip.AddrPort]*Conn
	candidates map[netip.AddrPort]*Conn // wait to replace one of conns; see accept.go
	unborn     list.List                // those of conns whose handshake is not over, oldest first
	timers     timers
	hints      hints
	out        [wire.HelloSize]byte // an answer to somebody without a connection
}

// Listen opens addr ("host:port"; port 0 is any free one). Nothing is read until [Listener.Serve].
// An address that is not loopback needs [Config.Insecure], else the error is [ErrInsecure].
func Listen(addr string, cfg Config) (*Listener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	pc, err := cfg.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	if err := cfg.allow(pc.LocalAddr()); err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	return &Listener{
		loop:       loop{pc: pc, interval: cfg.Tick, done: make(chan struct{})},
		cfg:        cfg,
		log:        cfg.Logger,
		conns:      make(map[netip.AddrPort]*Conn),
		candidates: make(map[netip.AddrPort]*Conn),
	}, nil
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
	h, body, err := wire.ParseHeader(d.b)
	if err != nil {
		l.count(session.Malformed)
		return
	}
	switch h.Kind {
	case wire.HelloKind:
		l.hello(now, d.from, body)
	case wire.DataKind, wire.ReliableKind, wire.HeartbeatKind, wire.CloseKind:
		l.numbered(now, d, h)
	case wire.WelcomeKind, wire.RefuseKind, wire.UnknownKind:
		l.count(session.Unexpected)
	}
}

// numbered takes a datagram that belongs to a session.
func (l *Listener) numbered(now time.Time, d datagram, h wire.Header) {
	c := l.lookup(d.from, h.Tag)
	if c == nil {
		if h.Kind != wire.CloseKind { // its second copy is no surprise
			l.unknown(now, d, h)
		}
		return
	}
	r := c.input(now, d.b)
	l.count(r.verdict)
	l.admit(c, r.state)
	c.deliver(now, r, l.handler)
	l.settle(c)
}

// lookup returns the connection of that address and tag, or nil.
func (l *Listener) lookup(from netip.AddrPort, tag uint8) *Conn {
	if c := l.conns[from]; c != nil && c.session.Tag() == tag {
		return c
	}
	if c := l.candidates[from]; c != nil && c.session.Tag() == tag {
		return c
	}
	return nil
}

// unknown counts a datagram of no session, and says so to its sender unless that would be more than it sent.
func (l *Listener) unknown(now time.Time, d datagram, h wire.Header) {
	l.counters.unknownSession.Add(1)
	if len(d.b) >= wire.UnknownSize {
		l.hint(now, d.from, h)
	}
}

// hint tells a sender that there is no such session, if there were not too many lately.
func (l *Listener) hint(now time.Time, to netip.AddrPort, echo wire.Header) {
	if l.hints.take(now) {
		b := wire.AppendHeader(l.out[:0], wire.Header{Kind: wire.UnknownKind})
		l.send(wire.AppendUnknown(b, wire.Unknown{Echo: echo}), to)
	}
}

// send sends an answer that belongs to no session.
func (l *Listener) send(b []byte, to netip.AddrPort) {
	_, err := l.pc.WriteTo(b, to)
	l.counters.sent.count(len(b), err)
}

func (l *Listener) count(v session.Verdict) { l.counters.verdicts[v].Add(1) }
