package bots

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// bot is one player. It repeats a trace from a start row of its own.
type bot struct {
	conn   *client.Conn
	stream *client.FrameStream
	trace  *trace.Trace

	// Of its pacer alone:
	row   int
	phase time.Duration // of its calls within the period
	since time.Time     // when it joined

	ended atomic.Pointer[error]
	seen  seen // of observe
}

// ErrSilence reports that the server did not answer within Options.Wait.
var ErrSilence = errors.New("no answer")

// newBot connects bot i.
func (r *run) newBot(ctx context.Context, i int) (*bot, error) {
	t := r.traces[i%len(r.traces)]
	silence := fmt.Errorf("%w within %v", ErrSilence, r.options.Wait)
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Wait, silence)
	defer cancel()
	cfg, err := r.client(i)
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(ctx, r.options.To, cfg)
	if err != nil {
		return nil, err
	}
	stream, err := client.BindSchema(ctx, conn, t.Schema, client.BindConfig{})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b := &bot{conn: conn, stream: stream, trace: t, row: i * len(t.Frames) / r.options.Players, since: time.Now()}
	if r.options.Rate > 0 {
		b.phase = time.Duration(spread(i) * float64(time.Second) / r.options.Rate)
	}
	return b, nil
}

// spread returns element i of a sequence whose first n elements lie evenly in [0, 1) for each n:
// the calls of any number of players are spread over the period.
func spread(i int) float64 {
	_, part := math.Modf(float64(i) / math.Phi)
	return part
}

// call makes one call. It returns false after the last one.
func (b *bot) call() bool {
	err := b.stream.Send(b.trace.At(b.row))
	b.row++
	if err == nil || errors.Is(err, client.ErrReconnecting) {
		return true
	}
	err = fmt.Errorf("%s: row %d: %w", b.trace.Name, (b.row-1)%len(b.trace.Frames)+1, err)
	b.ended.Store(&err)
	return false
}

// over returns why the bot stopped, or nil.
func (b *bot) over() error {
	if err := b.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// startMoving moves the bots to new sockets, one after the other, until stop is called. stop may be
// called more than once.
func (r *run) startMoving() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var moving sync.WaitGroup
	if r.options.RebindEvery > 0 {
		moving.Go(func() { r.move(ctx, r.options.RebindEvery/time.Duration(r.options.Players)) })
	}
	return func() {
		cancel()
		moving.Wait()
	}
}

// move moves one bot to a new socket at each interval. A bot that is not connected, or for which no
// socket can be opened, keeps its socket.
func (r *run) move(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for next := 0; ; next++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b := r.bot(next)
		if b != nil && b.conn.Rebind() == nil {
			r.rebinds.Add(1)
		}
	}
}

// bot returns the bot with this turn, or nil if none has joined there yet.
func (r *run) bot(turn int) *bot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := turn % r.options.Players; i < len(r.bots) {
		return r.bots[i]
	}
	return nil
}

// lossyNetwork loses datagrams of another network, and does nothing else to them.
type lossyNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in simnet.Config
}

// newLossyNetwork makes one. Each socket has losses of its own. The error is that of
// simnet.Config.Validate.
func newLossyNetwork(inner transport.Network, out, in simnet.Config) (*lossyNetwork, error) {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return nil, err
	}
	return &lossyNetwork{inner: inner, out: out, in: in}, nil
}

// ListenPacket opens a socket of the inner network.
func (n *lossyNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	out, in, err := n.links()
	if err != nil {
		return nil, err
	}
	pc, err := n.inner.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{pc: pc, out: loser{link: out}, in: loser{link: in}}, nil
}

func (n *lossyNetwork) links() (out, in *simnet.Link, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, outErr := simnet.NewLink(n.out)
	in, inErr := simnet.NewLink(n.in)
	n.out.Seed++
	n.in.Seed++
	return out, in, errors.Join(outErr, inErr)
}

// lossyConn is a socket of a lossyNetwork. It names each method, so that none gets around the loss.
type lossyConn struct {
	pc      transport.PacketConn
	out, in loser
}

func (c *lossyConn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.pc.ReadFrom(p)
		if err != nil || !c.in.loses(n) {
			return n, from, err
		}
	}
}

func (c *lossyConn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if c.out.loses(len(p)) {
		return len(p), nil
	}
	return c.pc.WriteTo(p, to)
}

func (c *lossyConn) SetReadDeadline(t time.Time) error { return c.pc.SetReadDeadline(t) }

func (c *lossyConn) LocalAddr() netip.AddrPort { return c.pc.LocalAddr() }

func (c *lossyConn) Close() error { return c.pc.Close() }

// loser is one direction. A link that takes no time needs no clock.
type loser struct {
	mu       sync.Mutex
	link     *simnet.Link
	arrivals []time.Duration
}

func (l *loser) loses(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals = l.link.Send(l.arrivals[:0], 0, size)
	return len(l.arrivals) == 0
}
