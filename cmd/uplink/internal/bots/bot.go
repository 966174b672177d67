package bots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
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
var ErrSilence = errors.New("waited")

func (r *run) newBot(ctx context.Context, i int) (*bot, error) {
	t := r.traces[i%len(r.traces)]
	silence := fmt.Errorf("%w %v (--wait)", ErrSilence, r.options.Wait)
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Wait, silence)
	defer cancel()
	cfg, err := r.client(i)
	if err != nil {
		return nil, err
	}
	conn, stream, err := Bind(ctx, r.options.To, cfg, t)
	if err != nil {
		return nil, err
	}
	if r.options.Joined != nil {
		if err := r.options.Joined(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	b := &bot{conn: conn, stream: stream, trace: t, row: i * len(t.Frames) / r.options.Players, since: time.Now()}
	if r.options.Rate > 0 {
		b.phase = time.Duration(spread(i) * float64(time.Second) / r.options.Rate)
	}
	return b, nil
}

// Bind connects a client and binds the RPC of a trace.
func Bind(
	ctx context.Context, addr string, cfg client.Config, t *trace.Trace,
) (*client.Conn, *client.FrameStream, error) {
	conn, err := client.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, nil, err
	}
	stream, err := client.BindSchema(ctx, conn, t.Schema, client.BindConfig{})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, stream, nil
}

// spread returns element i of a sequence whose first n elements lie evenly in [0, 1) for each n.
func spread(i int) float64 {
	_, part := math.Modf(float64(i) / math.Phi)
	return part
}

// call makes one call. It returns false after the last one.
func (b *bot) call() bool {
	_, err := b.stream.Send(b.trace.At(b.row))
	b.row++
	if err == nil || errors.Is(err, client.ErrReconnecting) {
		return true
	}
	err = fmt.Errorf("%s: row %d: %w", b.trace.Name, (b.row-1)%len(b.trace.Frames)+1, err)
	b.ended.Store(&err)
	return false
}

func (b *bot) over() error {
	if err := b.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// move moves one bot at a time to a new socket. If that fails, the bot keeps its socket.
func (r *run) move(ctx context.Context) {
	next := 0
	for range sleep.Every(ctx, r.options.RebindEvery/time.Duration(r.options.Players)) {
		if b := r.bot(next); b != nil && b.conn.Rebind() == nil {
			r.rebinds.Add(1)
		}
		next++
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

// lossyNetwork loses datagrams of another network, and does nothing else to them. Unlike
// simnet.WrapNetwork it needs no goroutines and timers, which thousands of bots would notice.
type lossyNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in simnet.Config
}

// newLossyNetwork returns one whose sockets each have their own losses.
func newLossyNetwork(inner transport.Network, out, in simnet.Config) (*lossyNetwork, error) {
	return &lossyNetwork{inner: inner, out: out, in: in}, errors.Join(out.Validate(), in.Validate())
}

// ListenPacket opens a socket of the inner network.
func (n *lossyNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, outErr := simnet.NewLink(n.out)
	in, inErr := simnet.NewLink(n.in)
	pc, err := n.inner.ListenPacket(addr)
	if err := errors.Join(err, outErr, inErr); err != nil {
		return nil, err
	}
	n.out.Seed++
	n.in.Seed++
	return &lossyConn{PacketConn: pc, out: loser{link: out}, in: loser{link: in}}, nil
}

// lossyConn is a socket of a lossyNetwork.
type lossyConn struct {
	transport.PacketConn
	out, in loser
}

func (c *lossyConn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		if err != nil || !c.in.loses(n) {
			return n, from, err
		}
	}
}

func (c *lossyConn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if c.out.loses(len(p)) {
		return len(p), nil
	}
	return c.PacketConn.WriteTo(p, to)
}

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

// pacer has bots call, each once a period at its own phase, from one goroutine: a timer for each
// bot would cost more than the calls. What is due is counted from a fixed origin, so that nothing
// drifts.
type pacer struct {
	origin  time.Time
	rate    float64
	late    *meter.Durations // how late each call was
	skipped atomic.Uint64

	mu     sync.Mutex
	joined []*bot
	wake   chan struct{} // holds a token if somebody has joined

	// Of run alone:
	ring  []*bot // by phase
	at    int    // in the ring: who is next
	cycle int64  // in which period
}

func newPacer(origin time.Time, rate float64) *pacer {
	return &pacer{origin: origin, rate: rate, late: meter.NewDurations(), wake: make(chan struct{}, 1)}
}

func (p *pacer) add(b *bot) {
	p.mu.Lock()
	p.joined = append(p.joined, b)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, any := p.callDue()
		if !any {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.admit(time.Now())
		case <-timer.C:
		}
	}
}

// callDue makes the calls that are due, at most a period's, and returns the time until the next.
func (p *pacer) callDue() (wait time.Duration, any bool) {
	for range len(p.ring) {
		b := p.ring[p.at]
		due := p.due(b)
		now := time.Now()
		late := now.Sub(due)
		if late < 0 {
			return -late, true
		}
		if p.call(b, due, late) {
			p.at++
		} else {
			p.ring = slices.Delete(p.ring, p.at, p.at+1)
		}
		if p.at >= len(p.ring) {
			p.at = 0
			p.cycle++
		}
	}
	return 0, len(p.ring) > 0
}

func (p *pacer) due(b *bot) time.Time {
	return p.origin.Add(time.Duration(float64(p.cycle)/p.rate*float64(time.Second)) + b.phase)
}

// call makes a call, unless it is a whole period late: two at once would be another load.
func (p *pacer) call(b *bot, due time.Time, late time.Duration) bool {
	if due.Before(b.since) {
		return true
	}
	p.late.Add(late)
	if late.Seconds()*p.rate >= 1 {
		p.skipped.Add(1)
		return true
	}
	return b.call()
}

// admit adds the bots that have joined. Each calls first at its phase of the period.
func (p *pacer) admit(now time.Time) {
	p.mu.Lock()
	joined := p.joined
	p.joined = nil
	p.mu.Unlock()
	for _, b := range joined {
		if len(p.ring) == 0 {
			p.cycle = int64(now.Sub(p.origin).Seconds() * p.rate)
			p.at = 0
		}
		i, _ := slices.BinarySearchFunc(p.ring, b, func(a, b *bot) int { return cmp.Compare(a.phase, b.phase) })
		p.ring = slices.Insert(p.ring, i, b)
		if i < p.at {
			p.at++
		}
	}
}
