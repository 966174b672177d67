package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = message.MaxMessage

// roomInterval is the time after which a goroutine that waits for room looks again.
const roomInterval = 10 * time.Millisecond

// Conn is a client's connection to a dedicated server. Its methods are safe for concurrent use.
type Conn struct {
	cfg Config
	// panicLog is Config.Logger, or slog's default logger if that is nil: no panic is silent.
	panicLog *slog.Logger

	addr    string
	start   time.Time
	closed  chan struct{} // closed by Close
	close   sync.Once
	work    sync.WaitGroup // goroutines that reconnect
	out     outbox
	worlds  replication.Subscriptions
	offers  ratelimit.Bucket // offers of worlds since start; used by the goroutine that receives
	notices ratelimit.Bucket // handovers since start; guarded by receiving

	mismatches mismatches

	streamed [2]atomic.Uint64 // bytes of streams sent, received

	// receiving is held while one of the connections handles what it received: during a handover
	// there are two, and the game's callbacks run one at a time.
	receiving sync.Mutex

	mu         sync.Mutex
	link       *transport.Conn // nil while reconnecting
	active     *connection     // of link
	standby    *standby        // another server, to which the client may switch
	lookAgain  time.Time       // earliest time of the next search for another server
	abandoned  time.Time       // when the client last gave up a standby that it had searched for
	former     map[*connection]struct{}
	unanswered uint64        // bytes that were sent to servers of handovers that did not answer
	failures   failures      // of handovers
	leaving    bool          // the server is about to shut down
	gone       error         // why the connection ended for good; nil if it did not
	stop       func()        // cancels the goroutine that reconnects; nil if there was none
	wait       time.Duration // before the next attempt to reconnect
	state      session.State
	events     []session.Event // not reported yet
	reporting  bool            // a goroutine reports events
	attempt    int             // to reconnect
	loss       recentLoss
	bindings   []*binding       // by RPC number; elements of a slice that was read never change
	redundancy int              // Config.Redundancy, or the value of SetRedundancy
	messages   ratelimit.Bucket // messages of SendReliable since start
	requests   requests
	streams    *streams.Mux // of link
	congestion congestion
	budget     budget
	meter      meter
	stats      Stats
}

// standby is another server, to which the client switches when it is ready there: because of a
// handover, or because its own server does not answer.
type standby struct {
	notice message.HandoverNotice // of a handover
	reader *streams.Reader        // of the payload; nil if it is no handover
	until  time.Time              // when the client stays if it has not switched
	cancel context.CancelFunc

	// Conn.mu guards the rest.
	next      *connection // nil until it is connected
	addr      string
	connected time.Time
	payload   bool      // the other server has the payload
	ready     time.Time // when everything but worlds was ready; zero: it is not
}

func newConn(cfg Config, addr string) *Conn {
	c := &Conn{
		cfg: cfg, panicLog: cfg.Logger, addr: addr, start: time.Now(), closed: make(chan struct{}),
		redundancy: cfg.Redundancy, budget: budget{configured: float64(cfg.Bandwidth)},
	}
	c.worlds.Report = c.worldReport
	c.out.bundle, c.out.worlds = message.NewBundler(transport.MaxPayload), &c.worlds
	return c
}

func (c *Conn) bind(ctx context.Context, rpcSchema *schema.Schema, cfg BindConfig) (*binding, error) {
	b, err := c.addBinding(rpcSchema, cfg)
	if err != nil {
		return nil, &opError{"bind " + rpcSchema.RPC(), err}
	}
	return b, b.wait(ctx)
}

func (c *Conn) addBinding(rpcSchema *schema.Schema, cfg BindConfig) (*binding, error) {
	cfg, err := cfg.withDefaults(&c.cfg, rpcSchema.RateHz())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case isClosed(c.closed):
		return nil, net.ErrClosed
	case c.gone != nil:
		return nil, c.gone
	}
	b := &binding{
		sender: sender{
			cfg: &c.cfg, out: &c.out, closed: c.closed, schema: rpcSchema, reliable: cfg.Reliable, delay: cfg.Delay,
			link: c.link, frame: rpcSchema.NewFrame(), limits: c.budget.limits(), redundancy: c.redundancy,
			departures: newDepartures(), stats: RPCStats{RPC: rpcSchema.RPC(), Reliable: cfg.Reliable},
		},
		answer: make(chan error, 1), mismatches: &c.mismatches,
	}
	if b.number, err = c.numberFor(b); err != nil {
		return nil, err
	}
	if b.request, err = b.newRequest(nil); err != nil {
		return nil, err
	}
	all := slices.Clone(c.bindings)
	if b.number == len(all) {
		all = append(all, nil)
	}
	all[b.number] = b
	c.bindings = all
	if st := c.standby; st != nil && st.next != nil {
		b.prepare(st.next.own)
	}
	return b, nil
}

// numberFor returns the number of a new binding: that of an earlier attempt to bind the same RPC in
// the same way, which the server may have granted, an unused one, or a new one.
func (c *Conn) numberFor(b *binding) (int, error) {
	unused := -1
	for n, other := range c.bindings {
		switch failed, reusable := other.attempt(); {
		case other.schema.RPC() != b.schema.RPC():
			if reusable && unused < 0 {
				unused = n
			}
		case !failed:
			return 0, errors.New("it is bound already, and a connection binds an RPC once: use the stream of the first Bind")
		case reusable || other.sameAs(b):
			return n, nil
		}
	}
	if unused >= 0 {
		return unused, nil
	}
	if n := len(c.bindings); n <= rpcdelta.MaxRPC {
		return n, nil
	}
	return 0, fmt.Errorf("a connection has at most %d RPCs", rpcdelta.MaxRPC+1)
}

// binding returns the binding of an RPC number, or nil.
func (c *Conn) binding(n int) *binding {
	if all := c.all(); n < len(all) {
		return all[n]
	}
	return nil
}

func (c *Conn) all() []*binding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bindings
}

// current returns the link, or nil while reconnecting.
func (c *Conn) current() *transport.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// noLink returns the reason why there is no link.
func (c *Conn) noLink() error {
	if isClosed(c.closed) {
		return errClosed
	}
	return cmp.Or(c.Err(), ErrReconnecting)
}

// linkError returns the error of a method for an error of the link.
func (c *Conn) linkError(method string, err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return c.noLink()
	case err != nil:
		return fmt.Errorf("client: %s: %w", method, err)
	}
	return nil
}

// fail ends the connection for good. The caller holds c.mu.
func (c *Conn) fail(err error) {
	c.cfg.Logger.Warn("connection ended", "server", c.addr, "error", err)
	c.gone = err
	c.note(session.Event{State: session.Disconnected, Err: err})
	for _, b := range c.bindings {
		b.refuse(err)
	}
}

// Flush sends the payloads that were collected since the last Tick in one datagram; see
// Config.Tick. Call it at the end of the game's tick. If there is such a datagram, all frames that
// wait because of BindConfig.Delay leave in it; otherwise they stay, see [Stream.Flush]. It returns
// [ErrReconnecting] while reconnecting, and [net.ErrClosed] after Close.
func (c *Conn) Flush() error {
	if c.out.waiting() {
		for _, b := range c.all() {
			_ = b.Flush() // the next Send returns the error
		}
	}
	if link := c.current(); link == nil || errors.Is(c.out.flush(link), net.ErrClosed) {
		return c.noLink()
	}
	return nil
}

// Close sends what is waiting, ends the connection, informs the server and waits for the goroutines
// of the connection. It may be called more than once.
func (c *Conn) Close() error {
	c.close.Do(func() {
		for _, b := range c.all() {
			_ = b.Flush() // nothing can be done about an error
		}
		_ = c.Flush()
		c.mu.Lock()
		c.note(session.Event{State: session.Disconnected, Err: session.ErrQuit})
		close(c.closed)
		if c.stop != nil {
			c.stop()
		}
		links := c.takeLinks()
		c.mu.Unlock()
		for _, link := range links {
			_ = link.Close() // always nil
		}
		c.work.Wait()
		c.report()
	})
	return nil
}

// takeLinks returns all links that are open, for Close. The caller holds c.mu.
func (c *Conn) takeLinks() (links []*transport.Conn) {
	if c.link != nil {
		links = append(links, c.link)
	}
	if st := c.standby; st != nil {
		if st.cancel(); st.next != nil {
			links = append(links, st.next.own)
		}
	}
	for s := range c.former {
		links = append(links, s.own)
	}
	c.link = nil
	return links
}

// ID returns the number of the session, or 0 while reconnecting. ds.Player.ID returns the same
// number at the server. It changes with each reconnection.
func (c *Conn) ID() uint64 {
	if link := c.current(); link != nil {
		return link.ID()
	}
	return 0
}

// Err returns why the connection has ended for good without Close: an error that wraps one of
// package session, and [ErrLost] if the client would otherwise have reconnected. It is nil while
// the client is connected or reconnecting.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// RTT returns the smoothed round-trip time; 0 until it is measured.
func (c *Conn) RTT() time.Duration {
	if link := c.current(); link != nil {
		return link.RTT()
	}
	return 0
}

// Rebind continues the session from another socket, for a program that learns of a change of the
// machine's networks. Datagrams in flight are lost. It returns [ErrReconnecting] while
// reconnecting, and [net.ErrClosed] after Close. If the new socket cannot be opened, it returns
// that error, and the session continues on the old socket.
func (c *Conn) Rebind() error {
	link := c.current()
	if link == nil {
		return c.noLink()
	}
	return c.linkError("rebind", link.Rebind())
}

// SetRedundancy changes Config.Redundancy, from the next call of each RPC. It returns an error if n
// is invalid; nothing is changed then.
func (c *Conn) SetRedundancy(n int) error {
	if err := (rpcdelta.EncoderConfig{Redundancy: n}).Check(); err != nil {
		return fmt.Errorf("client: SetRedundancy: %s", strings.TrimPrefix(err.Error(), "rpcdelta: "))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redundancy = n
	for _, b := range c.bindings {
		b.setRedundancy(n)
	}
	return nil
}

// SendReliable sends a copy of message, at most [MaxMessage] bytes, to the server, which calls
// ds.Config.OnMessage. All messages arrive, in order; those that are not acknowledged when the
// connection is lost may be lost with it. The rate limit is 64 KiB/s with a burst of 128 KiB, where
// each message counts 64 bytes more than its size. If it is exceeded, or [Config.ReliableQueue]
// leaves no room, the error wraps session.ErrBacklog and names the limit. While reconnecting and
// after Close, the errors are those of [Stream.Send]. SendReliable never waits: [Conn.WaitReliable]
// does.
func (c *Conn) SendReliable(message []byte) error {
	if len(message) > MaxMessage {
		return fmt.Errorf("client: a message of %d bytes, want at most %d", len(message), MaxMessage)
	}
	return c.sendMessage(message, (*transport.Conn).SendReliable)
}

// ReliableRoom returns how many bytes a message of [Conn.SendReliable] may have now, up to
// [MaxMessage]: what the rate limit and [Config.ReliableQueue] leave. It is 0 while reconnecting.
func (c *Conn) ReliableRoom() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reliableRoom()
}

func (c *Conn) reliableRoom() int {
	if c.link == nil || c.leaving {
		return 0
	}
	rate := message.ClientMessages.Burst - c.messages.Used(time.Since(c.start), message.ClientMessages) - message.MessageCost(0)
	return max(min(c.link.ReliableRoom()-1, int(rate), MaxMessage), 0)
}

// WaitReliable waits until there is room for a reliable message of n bytes, up to [MaxMessage],
// also while the client reconnects. Another goroutine may take the room first. The error is that of
// the context, or after the end of the connection that of [Stream.Send]. Callbacks of the
// connection must not call it: they would hold up what makes room.
func (c *Conn) WaitReliable(ctx context.Context, n int) error {
	if n > MaxMessage {
		return fmt.Errorf("client: a message of %d bytes, want at most %d", n, MaxMessage)
	}
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		c.mu.Lock()
		room, gone := c.reliableRoom(), c.gone
		c.mu.Unlock()
		switch {
		case gone != nil || isClosed(c.closed):
			return c.linkError("wait for room", net.ErrClosed)
		case room >= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("client: %w: no room for %d bytes of reliable data: %w", session.ErrBacklog, n, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// SendUnreliable sends a copy of message, at most transport.MaxPayload-1 bytes, to the server,
// which calls ds.Config.OnUnreliable if the message arrives. It may be lost, and may overtake
// others. It has a datagram of its own. The rate limit is that of SendReliable, with which it is
// shared; errors are those of SendReliable. SendUnreliable never waits.
func (c *Conn) SendUnreliable(message []byte) error {
	if len(message) >= transport.MaxPayload {
		return fmt.Errorf("client: an unreliable message of %d bytes, want at most %d", len(message), transport.MaxPayload-1)
	}
	return c.sendMessage(message, (*transport.Conn).Send)
}

func (c *Conn) sendMessage(msg []byte, send func(*transport.Conn, []byte) error) error {
	c.mu.Lock() // also while it sends: a handover may not come in between
	link, err := c.admit(len(msg))
	if err == nil {
		err = send(link, message.AppendMessage(make([]byte, 0, 1+len(msg)), msg))
	}
	c.mu.Unlock()
	return c.linkError("send a message", err)
}

// admit counts a message of a size in bytes, and returns the link for it. The caller holds c.mu.
func (c *Conn) admit(size int) (*transport.Conn, error) {
	switch {
	case c.link == nil || c.leaving:
		return nil, net.ErrClosed
	case !c.messages.Take(time.Since(c.start), message.ClientMessages, message.MessageCost(size)):
		limit := message.ClientMessages
		return nil, fmt.Errorf("%w: %d bytes would exceed %.0f KiB/s with bursts of %.0f KiB", session.ErrBacklog, size, limit.PerSecond/1024, limit.Burst/1024)
	}
	return c.link, nil
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	out := c.stats
	if c.link != nil {
		out.Transport = out.Transport.Plus(c.link.Stats())
	}
	out.Budget = c.budget.stats()
	out.RTT = out.Transport.RTT
	out.SentBitsPerSecond, out.ReceivedBitsPerSecond = c.meter.sent, c.meter.received
	if t := &out.Transport; t.Lost > 0 {
		out.Loss = float64(t.Lost) / float64(t.Lost+t.DatagramsReceived-t.Dropped.Total())
	}
	bindings := c.bindings
	c.mu.Unlock()
	out.StreamBytesSent, out.StreamBytesReceived = c.streamed[0].Load(), c.streamed[1].Load()
	out.Replication = c.worlds.Stats()
	for _, b := range bindings {
		if st, failed := b.snapshot(); !failed {
			out.RPCs = append(out.RPCs, st)
		}
	}
	return out
}

// rtts returns the lowest round-trip time that was measured lately, and the smoothed one; 0 if none
// was measured.
func (c *Conn) rtts() (lowest, smoothed time.Duration) {
	c.mu.Lock()
	link := c.link
	c.mu.Unlock()
	if link == nil {
		return 0, 0
	}
	st := link.Stats()
	return st.MinRTT, st.RTT
}

// count increases a counter of c.stats.
func (c *Conn) count(counter *uint64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += uint64(n)
}
