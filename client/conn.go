package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Conn is a client's connection to a dedicated server. Its methods are safe for
// concurrent use.
type Conn struct {
	cfg  Config
	addr string

	closed chan struct{}  // closed by Close
	close  sync.Once      // guards Close
	work   sync.WaitGroup // reconnecting goroutines

	mu         sync.Mutex
	link       *transport.Conn // nil while reconnecting
	budget     budget
	redundancy int  // of unreliable RPCs, as Config has it
	leaving    bool // the server is about to shut down
	meter      meter
	started    time.Time
	messages   ratelimit.Bucket // of SendReliable, by the time since
	offers     ratelimit.Bucket // of the server's worlds, likewise; of the goroutine that receives
	stop       func()           // cancels the goroutine that reconnects; nil if there was none
	gone       error            // why the server ended the connection; nil if it did not
	wait       time.Duration    // before the next attempt to reconnect
	streams    []*stream        // by RPC number
	stats      Stats

	out    outbox
	worlds replication.Subscriptions
}

// Dial connects to the server at addr, "127.0.0.1:7777" say. It waits until the
// server answers, refuses, or ctx is done. If the token has been used, and there is
// [Config.Renew], it tries once more with another one.
func Dial(ctx context.Context, addr string, cfg Config) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newConn(cfg, addr)
	err = c.connect(ctx, cfg.Token)
	if errors.Is(err, token.ErrUsed) && !cfg.spent() {
		// Perhaps by this handshake: if its answers did not arrive, the server has waited in vain.
		err = c.again(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("client: dial %s: %w", addr, err)
	}
	return c, nil
}

func newConn(cfg Config, addr string) *Conn {
	c := &Conn{cfg: cfg, addr: addr, closed: make(chan struct{}), started: time.Now(), redundancy: cfg.Redundancy, budget: budget{limit: float64(cfg.Bandwidth)}}
	c.worlds.Refused = func(world string, err error) {
		c.cfg.Logger.Warn("world refused", "world", world, "error", err)
	}
	if cfg.coalesces() {
		c.out.bundle = control.NewBundler(transport.MaxPayload)
	}
	return c
}

// connect makes a transport connection with that token. Each has a socket, and so an
// address, of its own: datagrams of an older one cannot stray into it.
func (c *Conn) connect(ctx context.Context, t token.Token) error {
	e := &events{Conn: c}
	link, err := transport.Dial(ctx, c.addr, c.cfg.transport(t), e)
	if err != nil {
		return err
	}
	if err := c.install(e, link); err != nil {
		_ = link.Close() // always nil
		return err
	}
	link.Wake(time.Now()) // there are streams to bind now
	return nil
}

// install makes link the current one, unless it or the connection is over
// already.
func (c *Conn) install(e *events, link *transport.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return net.ErrClosed
	}
	if e.closed != nil {
		return e.closed
	}
	c.link, c.leaving = link, false
	for _, s := range c.streams {
		s.rebind(link)
	}
	return nil
}

// Flush sends what was collected since the last Tick, in one datagram; see
// Config.Tick. Frames that BindConfig.SendEvery holds back stay: see [Stream.Flush]. Call it
// at the end of the game's tick. While the connection is being made again it is
// [ErrReconnecting], and after Close [net.ErrClosed].
func (c *Conn) Flush() error {
	c.mu.Lock()
	link, gone := c.link, c.gone
	c.mu.Unlock()
	switch {
	case c.isClosed():
		return fmt.Errorf("client: %w", net.ErrClosed)
	case gone != nil:
		return gone
	case link == nil || errors.Is(c.out.flush(link), net.ErrClosed):
		return ErrReconnecting
	}
	return nil
}

// Close ends the connection, tells the server, and waits for what the
// connection runs. What waits to be sent is sent before. It may be called more
// than once.
func (c *Conn) Close() error {
	c.close.Do(func() {
		for _, s := range c.all() {
			_ = s.flush() // nobody can wait for it to be better
		}
		_ = c.Flush()
		c.mu.Lock()
		close(c.closed)
		if c.stop != nil {
			c.stop()
		}
		link := c.link
		c.link = nil
		c.mu.Unlock()
		if link != nil {
			_ = link.Close() // always nil
		}
		c.work.Wait()
	})
	return nil
}

// isClosed reports whether Close was called.
func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// withBindTimeout returns ctx, with Config.BindTimeout as its timeout unless it has a deadline.
func (c *Conn) withBindTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.BindTimeout)
}

// ID is the number of the session, the same as ds.Player has; 0 while
// reconnecting, and another one after it.
func (c *Conn) ID() uint64 {
	if link := c.current(); link != nil {
		return link.ID()
	}
	return 0
}

// Err is why the connection has ended for good without Close: an error that wraps
// [ErrKicked], or [ErrLost] and the reason where it is not made again. It is nil while
// the connection lives or is being made again.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// RTT is the smoothed round trip to the server; 0 until it was measured.
func (c *Conn) RTT() time.Duration {
	if link := c.current(); link != nil {
		return link.RTT()
	}
	return 0
}

// Rebind has the connection go on from another socket, and so from another local address: a program that learns
// that the machine's networks have changed need not wait until that is noticed. The session stays the same; what is
// on its way is lost. It is [ErrReconnecting] while the connection is being made again, [net.ErrClosed] after
// Close, or the error of opening a socket, with which nothing has changed.
func (c *Conn) Rebind() error {
	link := c.current()
	if link == nil {
		return c.ended()
	}
	err := link.Rebind()
	switch {
	case errors.Is(err, net.ErrClosed):
		return c.ended()
	case err != nil:
		return fmt.Errorf("client: rebind: %w", err)
	}
	return nil
}

func (c *Conn) current() *transport.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// over ends the connection for good, with c.mu held.
func (c *Conn) over(err error) {
	c.cfg.Logger.Warn("connection ended", "server", c.addr, "error", err)
	c.gone = err
	for _, s := range c.streams {
		s.refuse(c.gone)
	}
}

// malformed counts a message that no server sends.
func (c *Conn) malformed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Malformed++
}

// regulate measures, keeps to the budget, and says when to do so next.
func (c *Conn) regulate(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return time.Time{} // install has it called again
	}
	if c.budget.due(now) || c.meter.due(now) {
		c.measure(now)
	}
	return sooner(c.meter.next(), c.budget.next())
}

// measure is the work of regulate, with c.mu held.
func (c *Conn) measure(now time.Time) {
	redundancy := 0
	for _, s := range c.streams {
		redundancy = max(redundancy, s.redundancy())
	}
	t := c.stats.Transport.Plus(c.link.Stats())
	if c.meter.due(now) {
		c.meter.step(now, &t)
	}
	// The few probes of a connection's first seconds are no reason to hold calls back.
	datagrams := t.DatagramsSent - t.ProbesSent
	sent := traffic{
		bits:   8 * (t.BytesSent - t.ProbeBytes + transport.IPSize*datagrams),
		around: 8 * c.link.Overhead() * datagrams,
	}
	if !c.budget.step(now, sent, redundancy) {
		return
	}
	for _, s := range c.streams {
		s.limit(c.budget.limits())
	}
}

// acks takes one ack after the other. A bad one does not keep those of other RPCs
// after it from being used; the error is the last one's.
func (c *Conn) acks(b []byte) (bad error) {
	c.mu.Lock()
	c.stats.AckBytes += uint64(1 + len(b))
	c.mu.Unlock()
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			return err
		}
		s := c.stream(int(a.RPC))
		if s == nil {
			bad = fmt.Errorf("%w: an ack of an RPC that is not bound", control.ErrMalformed)
		} else if err := s.ack(a); err != nil {
			bad = err
		}
		b = rest
	}
	return bad
}

func (c *Conn) bound(b []byte) error {
	a, err := control.ParseBindAnswer(b)
	if err != nil {
		return err
	}
	s := c.stream(int(a.RPC))
	if s == nil {
		return fmt.Errorf("%w: an answer for an RPC that is not bound", control.ErrMalformed)
	}
	s.answered(&a)
	return nil
}

func (c *Conn) stream(n int) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < len(c.streams) {
		return c.streams[n]
	}
	return nil
}

// all gives the streams there are. The slice's elements never change.
func (c *Conn) all() []*stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}
