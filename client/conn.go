package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Conn is a client's connection to a dedicated server. Its methods are safe for concurrent use.
type Conn struct {
	cfg Config
	// panicLog is Config.Logger, or slog's default logger if that is nil: no panic is silent.
	panicLog *slog.Logger

	start         time.Time
	closed        chan struct{} // closed by Close
	close         sync.Once
	work          sync.WaitGroup // goroutines that reconnect
	subscriptions replication.Subscriptions
	offers        ratelimit.Bucket // rate limit of offers of worlds; used by the goroutine that receives
	notices       ratelimit.Bucket // rate limit of handovers; guarded by receiving

	mismatches mismatches

	streamed [2]atomic.Uint64 // bytes of streams: sent, received

	// receiving is held while a link handles received data. During a handover there are several
	// links, and the game's callbacks must run one at a time.
	receiving sync.Mutex

	mu          sync.Mutex
	current     *link         // link to the server at which the game plays; nil while reconnecting
	next        *link         // link to another server, to which the client may switch
	old         []*link       // links to servers from which the client has switched
	move        *move         // the attempt to continue at another server, or nil
	addr        string        // address of the current server as dialed; while reconnecting, of the last or next one
	lookAgain   time.Time     // earliest time of the next search for another server
	abandoned   time.Time     // time at which the client last gave up a link to a server that it had searched for
	unanswered  uint64        // bytes of hellos that were sent to servers of handovers and not answered
	failures    failures      // failed handovers
	gone        error         // error with which the connection ended for good; nil until then
	stop        func()        // cancels the goroutine that reconnects; nil before the first one
	wait        time.Duration // wait before the next attempt to reconnect
	attempt     int           // number of attempts to reconnect
	state       State
	events      []Event          // events that OnEvent has not received yet
	reporting   bool             // a goroutine reports events
	bindings    []*binding       // by RPC number; elements of a slice that was read never change
	redundancy  int              // Config.Tuning.Redundancy, or the value of SetRedundancy
	messages    ratelimit.Bucket // rate limit of messages to the server
	lastRequest uint32           // id of the newest request
	budget      budget
	meter       meter
	stats       Stats
}

func newConn(cfg Config, addr string) *Conn {
	c := &Conn{
		cfg: cfg, panicLog: cfg.Logger, addr: addr, start: time.Now(), closed: make(chan struct{}),
		redundancy: cfg.Tuning.Redundancy, budget: budget{configured: float64(cfg.Bandwidth)},
	}
	c.subscriptions.Report = c.worldReport
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
		cfg: &c.cfg, closed: c.closed, mismatches: &c.mismatches, answer: make(chan error, 1),
		schema: rpcSchema, reliable: cfg.Reliable, delay: cfg.Delay, frame: rpcSchema.NewFrame(),
		limits: c.budget.limits(), redundancy: c.redundancy, stats: RPCStats{Payloads: endpoint.Payloads{RPC: rpcSchema.RPC(), Reliable: cfg.Reliable}},
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
	if c.current != nil {
		b.at = c.current.addSender(b)
	}
	if c.next != nil {
		c.next.addSender(b)
	}
	return b, nil
}

// numberFor returns the number of a new binding. It is the number of a failed attempt to bind the
// same RPC in the same way, because the server may have bound it; or else a reusable number, or a
// new one.
func (c *Conn) numberFor(b *binding) (int, error) {
	unused := -1
	for n, other := range c.bindings {
		failed := other.hasFailed()
		switch reusable := failed && c.reusable(n); {
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

// reusable reports whether another RPC can use the number n, whose Bind failed.
func (c *Conn) reusable(n int) bool {
	for _, l := range []*link{c.current, c.next} {
		if l != nil && !l.senders[n].reusable() {
			return false
		}
	}
	return true
}

func (c *Conn) all() []*binding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bindings
}

// link returns the current link, or nil while reconnecting.
func (c *Conn) link() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
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
	c.note(Event{State: Disconnected, Err: err})
	for _, b := range c.bindings {
		b.refuse(err)
	}
}

// Flush sends the payloads that were collected since the last Tick in one datagram; see
// Config.Tick. Call it at the end of the game's tick. If there is such a datagram, all frames that
// wait because of BindConfig.Delay leave in it; otherwise they stay, see [Stream.Flush]. It returns
// [ErrReconnecting] while reconnecting, and [net.ErrClosed] after Close.
func (c *Conn) Flush() error {
	l := c.link()
	if l == nil {
		return c.noLink()
	}
	if l.out.waiting() {
		for _, b := range c.all() {
			_ = b.flush() // the next Send returns the error
		}
	}
	if errors.Is(l.out.flush(), net.ErrClosed) {
		return c.noLink()
	}
	return nil
}

// Close sends the held frames, ends the connection, informs the server and waits for the goroutines
// of the connection. It may be called more than once.
func (c *Conn) Close() error {
	c.close.Do(func() {
		for _, b := range c.all() {
			_ = b.flush() // the connection ends anyway
		}
		_ = c.Flush()
		c.mu.Lock()
		c.note(Event{State: Disconnected, Err: transport.ErrQuit})
		close(c.closed)
		if c.stop != nil {
			c.stop()
		}
		if c.move != nil {
			c.move.cancel()
		}
		links := c.links()
		c.current = nil
		c.mu.Unlock()
		for _, link := range links {
			_ = link.own.Close() // always nil
		}
		c.work.Wait()
		c.report()
	})
	return nil
}

// links returns all links that are open. The caller holds c.mu.
func (c *Conn) links() []*link {
	links := slices.Clone(c.old)
	for _, l := range []*link{c.current, c.next} {
		if l != nil {
			links = append(links, l)
		}
	}
	return links
}

// ID returns the number of the session, or 0 while reconnecting. ds.Player.ID returns the same
// number at the server. It changes with each reconnection.
func (c *Conn) ID() uint64 {
	if l := c.link(); l != nil {
		return l.own.ID()
	}
	return 0
}

// Server returns the address of the current server, or of the last one, as it was dialed.
func (c *Conn) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addr
}

// Err returns why the connection has ended for good without Close: an error that wraps one of
// package transport, and [ErrLost] if the client would otherwise have reconnected. It is nil while
// the client is connected or reconnecting.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// RTT returns the smoothed round-trip time; 0 until it is measured.
func (c *Conn) RTT() time.Duration {
	if l := c.link(); l != nil {
		return l.own.RTT()
	}
	return 0
}

// Rebind continues the session from another socket, for a program that learns of a change of the
// machine's networks. Datagrams in flight are lost. It returns [ErrReconnecting] while
// reconnecting, and [net.ErrClosed] after Close. If the new socket cannot be opened, it returns
// that error, and the session continues on the old socket.
func (c *Conn) Rebind() error {
	l := c.link()
	if l == nil {
		return c.noLink()
	}
	return c.linkError("rebind", l.own.Rebind())
}

// SetRedundancy changes Config.Tuning.Redundancy, from the next call of each RPC. It returns an
// error if n is invalid; nothing is changed then.
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

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	out := c.stats
	if c.current != nil {
		out.Transport = endpoint.Sum(out.Transport, c.current.own.Stats())
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
	out.Replication = c.subscriptions.Stats()
	for _, b := range bindings {
		if st, failed := b.snapshot(); !failed {
			out.RPCs = append(out.RPCs, st)
		}
	}
	return out
}

// rtts returns the lowest recent round-trip time and the smoothed one, or 0 if none was measured.
func (c *Conn) rtts() (lowest, smoothed time.Duration) {
	l := c.link()
	if l == nil {
		return 0, 0
	}
	st := l.own.Stats()
	return st.MinRTT, st.RTT
}

// count increases a counter of c.stats.
func (c *Conn) count(counter *uint64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += uint64(n)
}

// State returns the state of the connection. Config.OnEvent is called when it changes.
func (c *Conn) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// note records an event, which report reports. Nothing follows Disconnected. The caller holds c.mu.
func (c *Conn) note(e Event) {
	if c.state == Disconnected {
		return
	}
	c.state = e.State
	if c.cfg.OnEvent != nil {
		c.events = append(c.events, e)
	}
}

// report calls Config.OnEvent with the events that were recorded, in order. If another goroutine is
// reporting already, that one reports them. The caller does not hold c.mu.
func (c *Conn) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reporting {
		return
	}
	c.reporting = true
	defer func() { c.reporting = false }() // also after runtime.Goexit
	for len(c.events) > 0 {
		e := c.events[0]
		c.events = c.events[1:]
		c.reportEvent(e)
	}
}

// reportEvent calls Config.OnEvent. The caller holds c.mu, which is released during the call.
func (c *Conn) reportEvent(e Event) {
	c.mu.Unlock()
	defer c.mu.Lock()
	_ = c.guarded(func() error { // guarded logs a panic
		c.cfg.OnEvent(e)
		return nil
	})
}

// noteTickRates logs the worlds whose tick rate has left 1 ± 0.05 or returned, and records their
// events.
func (c *Conn) noteTickRates() {
	for _, r := range c.subscriptions.RateNews() {
		if r.Off {
			c.cfg.Logger.Warn("tick rate of the server is off: playback follows in slow or fast motion", "world", r.World, "rate", r.Rate)
		} else {
			c.cfg.Logger.Info("tick rate of the server is normal again", "world", r.World, "rate", r.Rate)
		}
		c.mu.Lock()
		c.note(Event{State: c.state, World: r.World, TickRate: r.Rate})
		c.mu.Unlock()
	}
}

// notePartialViews logs the worlds whose views were shown before they were complete, and records
// their events.
func (c *Conn) notePartialViews() {
	for _, world := range c.subscriptions.PartialNews() {
		c.cfg.Logger.Warn("world shown before all objects of the view have arrived: raise ds.WorldConfig.EnterBytes or SendHz", "world", world)
		c.mu.Lock()
		c.note(Event{State: c.state, World: world, Partial: true})
		c.mu.Unlock()
	}
}

// noteMismatches logs and counts the mismatches that were added, and records their events. The
// caller does not hold c.mu, and calls report.
func (c *Conn) noteMismatches() {
	list := c.mismatches.take()
	if len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range list {
		c.stats.Mismatches++
		c.cfg.Logger.Warn("both ends differ", "error", e)
		c.note(Event{State: c.state, Mismatch: e})
	}
}

// worldReport handles the differences or the error that a subscription found in an offer.
func (c *Conn) worldReport(world string, d message.Differences, err error) {
	if err != nil {
		c.cfg.Logger.Warn("world refused", "world", world, "error", err)
		return
	}
	c.mismatches.add(&MismatchError{World: world, Here: d.Answering, There: d.Asking})
}

// panicReason is the text that the server receives. It does not contain the value of the panic,
// which may reveal internals of the client.
const panicReason = "internal client error"

// guarded calls f, which may decode data of the current server, and returns its error. If f panics,
// the session ends. The caller holds no lock.
func (c *Conn) guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(c.link(), v, debug.Stack())
		}
	}()
	return f()
}

// panicked counts and logs a panic, and ends the session of a link, unless that is nil. It
// returns the reason. It is safe for concurrent use, and called without a lock.
func (c *Conn) panicked(l *link, v any, stack []byte) error {
	text := shown(fmt.Sprint(v))
	err := fmt.Errorf("client: %w: %s", transport.ErrPanic, text)
	c.mu.Lock()
	c.stats.Panics++
	server := c.addr
	if l != nil && l.cause == nil {
		l.cause = err
	}
	c.mu.Unlock()
	c.panicLog.Error("handler panicked", "server", server, "panic", text, "stack", string(stack))
	if l != nil {
		l.own.CloseWith(transport.ErrQuit, panicReason) // the client reconnects
	}
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
