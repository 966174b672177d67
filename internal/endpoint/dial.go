package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/udp"
	"github.com/uplink-rpc/uplink/transport"
)

// dialerBuffers are shared by all dialed connections: of thousands in a process few send at the
// same time.
var dialerBuffers session.Buffers

// dialer owns a dialed connection and is its endpoint.
type dialer struct {
	loop
	conn    *Conn
	network transport.Network
	remote  netip.AddrPort
	socket  *socket
	handler Handler
	log     *slog.Logger
	sent    sentCounters
	alarm   alarm
	ready   chan struct{} // closed after Opened has returned
	// reporter is the first packet connection if it can report that there is no listener. It is nil
	// after the listener's first answer.
	reporter refusalReporter
}

// refusalReporter is a [transport.PacketConn] that passes on reports of the network. After
// ReportRefused(true), its reads return an error that wraps udp.ErrRefused if no program receives
// at the destination.
type refusalReporter interface{ ReportRefused(on bool) }

// Dial connects to the listener at addr ("host:port"). It returns when the connection is open and
// [Handler.Opened] has returned, or with an error if the listener refuses (session.ErrServerFull
// and others), if nothing is received for [Config.Timeout] (session.ErrTimeout), or if ctx is done.
// The connection is encrypted, and the listener is authenticated by the key that [Config.Token]
// names. The connection then stays open until either end closes it or it fails, independent of ctx.
// If ctx is done while Dial waits, the error also wraps that of an unauthenticated refusal, if one
// was received. If ctx is done at the moment when the connection opens, h sees it opened and closed
// and Dial returns an error. If h has a method Answered(), it is called for each answer that does
// not complete the handshake: the listener runs.
//
// If the host is a name with several addresses, of IPv4 or IPv6, Dial tries them one after the
// other, each 250 ms after the previous one, or at once when an attempt fails. It continues only at
// the address that answers first, and sends the token only there. It tries at most 8 addresses, and
// an error names all of them.
//
// On Linux and Windows, Dial fails with session.ErrNoServer if the network reports that no program
// receives at the address: at once if that is a loopback address, otherwise if no answer follows
// within 500 ms, since such reports can be forged.
func Dial(ctx context.Context, addr string, cfg Config, h Handler) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	remotes, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	r := newAddressRace(cfg, remotes, h)
	d := r.run(ctx)
	for _, other := range r.dialers {
		if other != d {
			_ = other.conn.Close() // always nil
		}
	}
	if d != nil {
		return d.conn, nil
	}
	if len(r.errs) == 0 {
		return nil, fmt.Errorf("no server was tried: %w", context.Cause(ctx))
	}
	if len(r.errs) == 1 && remotes[0].String() == addr {
		return nil, r.errs[0].error
	}
	return nil, addressErrors(r.errs)
}

// newDialer returns a dialer that has sent its first hello. Claim is [session.Config.Claim].
func newDialer(pc transport.PacketConn, r session.Request, cfg Config, h Handler, claim func() bool) *dialer {
	s := newSocket(pc)
	d := &dialer{
		network: cfg.Network,
		remote:  r.Remote.Addr,
		socket:  s,
		handler: h,
		log:     cfg.Logger,
		ready:   make(chan struct{}),
	}
	d.loop = newLoop(s, cfg.Tick, dialerBatch, &d.sent, cfg.Logger)
	d.alarm.pc = s
	if d.reporter, _ = pc.(refusalReporter); d.reporter != nil {
		d.reporter.ReportRefused(true)
	}
	c := &Conn{dialer: d, pc: s, outbox: connOutbox{outbox: &d.outbox}}
	c.session = session.NewClient(time.Now(), r, session.Config{
		Timeout: cfg.Timeout, Hellos: cfg.Hellos, Output: c.outbox.enqueue, Buffers: &dialerBuffers, KeyLog: cfg.keyLog(), Claim: claim,
		Limits: session.NewLimits(cfg.ReliableQueue, cfg.ReliableQueue),
	})
	c.outbox.write()
	d.conn = c
	return d
}

// serve is the connection's goroutine. If a handler ends it, another one calls serve again.
func (d *dialer) serve() {
	err := d.run()
	d.conn.finish(cmp.Or(err, session.ErrQuit))
	d.conn.notifyClosed(d.handler)
	// Nothing can be done about an error of closing a packet connection.
	_ = d.pc.Close()
	d.log.Debug("connection ended", "remote", d.remote, "cause", d.conn.err())
	close(d.done)
}

// run reads datagrams and sleeps until a timer is due, until the connection is stopped: a process
// may have thousands of connections, most of them idle. The error is the packet connection's.
func (d *dialer) run() error {
	for {
		if err := d.alarm.set(d.conn); err != nil {
			return err
		}
		// An earlier stop is noticed here, a later one ends the read.
		if d.stopped.Load() {
			return nil
		}
		n, err := d.pc.ReadBatch(d.batch)
		if errors.Is(err, udp.ErrRefused) {
			refused := err
			d.conn.update(func(s *session.Session) { s.Refused(time.Now(), refused) })
			err = nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			if d.stopped.Load() {
				return nil
			}
			return err
		}
		d.handle(d, time.Now(), d.batch[:n], true)
	}
}

func (d *dialer) receive(now time.Time, g datagram) {
	if g.from.Addr != d.remote {
		return
	}
	g.from.Local = netip.Addr{} // the system selects the source
	defer d.conn.recovered(d.handler)
	r := d.conn.input(now, g.from, g.b)
	d.conn.logPath(r, d.log)
	if d.reporter != nil && r.verdict == session.Accepted {
		d.reporter.ReportRefused(false)
		d.reporter = nil
	}
	if r.verdict == session.Accepted && r.state == session.Connecting {
		if h, ok := d.handler.(interface{ Answered() }); ok {
			h.Answered()
		}
	}
	d.conn.deliver(now, r, d.handler)
}

func (d *dialer) endBatch(time.Time) {}

// tick follows each batch and each alarm.
func (d *dialer) tick(now time.Time) {
	defer d.conn.recovered(d.handler)
	unanswered := locked(d.conn, func(s *session.Session) bool {
		s.Advance(now)
		return s.TakeUnanswered()
	})
	d.checkState(now)
	if since, due := d.alarm.takeTick(now); due && !d.stopped.Load() {
		if d.interval != OnWake {
			d.alarm.requestTick(nextTick(since, now, d.interval))
		}
		d.handler.Tick(now)
	}
	if failing := d.monitor.check(now, &d.outbox); failing || unanswered {
		err := d.rebind()
		d.log.Debug("opened another socket", "remote", d.remote, "sends_fail", failing, "unanswered", unanswered, "error", err)
	}
}

// checkState checks whether the connection has opened, which Dial waits for, or ended.
func (d *dialer) checkState(now time.Time) {
	if d.conn.phase == opened && !d.opened() {
		d.log.Debug("connected", "remote", d.remote)
		if d.interval != OnWake {
			d.alarm.requestTick(now.Add(d.interval))
		}
		close(d.ready)
	}
	if _, over := d.conn.schedule(); over {
		d.stop()
	}
}

func (d *dialer) opened() bool {
	select {
	case <-d.ready:
		return true
	default:
		return false
	}
}

// stop ends run. Any goroutine may call it, more than once.
func (d *dialer) stop() {
	d.stopped.Store(true)
	d.alarm.stop()
}

// reschedule sets the alarm earlier if the session requires it, and ends run if the session has
// ended. Any goroutine may call it.
func (d *dialer) reschedule() {
	if next, over := d.conn.schedule(); over {
		d.stop()
	} else {
		d.alarm.setEarlier(next)
	}
}

func (d *dialer) rebind() error {
	pc, err := d.network.ListenPacket(localFor(d.remote))
	if err != nil {
		return err
	}
	if err := d.socket.replace(pc); err != nil {
		return err
	}
	d.conn.update(func(s *session.Session) { s.Rebound(time.Now()) })
	d.reschedule()
	return nil
}

// alarm ends the read of a loop that sleeps until a timer is due. The loop sets it before each
// read; others may set it to an earlier time. It is safe for concurrent use.
type alarm struct {
	pc transport.PacketConn

	mu      sync.Mutex
	at      time.Time // the read deadline, unless the loop is about to set it
	tick    time.Time // time at which the handler's tick is due; zero: no tick is requested
	stopped bool
}

// set sets the alarm to the schedule of c, or to the handler's tick if that is earlier. Other
// goroutines may change the deadline at the same time.
func (a *alarm) set(c *Conn) error {
	a.mu.Lock()
	a.at = forever
	a.mu.Unlock()
	at, _ := c.schedule()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return nil
	}
	if !a.tick.IsZero() && a.tick.Before(at) {
		at = a.tick
	}
	if at.Before(a.at) {
		a.at = at
	}
	return a.pc.SetReadDeadline(a.at)
}

// setEarlier sets the alarm to a time unless it is set to an earlier one.
func (a *alarm) setEarlier(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setEarlierLocked(at)
}

func (a *alarm) setEarlierLocked(at time.Time) {
	if a.stopped || !at.Before(a.at) {
		return
	}
	a.at = at
	// An error means that the packet connection is closed, which ends the read too.
	_ = a.pc.SetReadDeadline(at)
}

// requestTick requests the handler's tick at a time, or at an earlier one that was requested.
func (a *alarm) requestTick(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tick.IsZero() || at.Before(a.tick) {
		a.tick = at
		a.setEarlierLocked(at)
	}
}

// takeTick reports whether the handler's tick is due, and since when, and removes the request if
// so.
func (a *alarm) takeTick(now time.Time) (since time.Time, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since = a.tick
	if since.IsZero() || now.Before(since) {
		return time.Time{}, false
	}
	a.tick = time.Time{}
	return since, true
}

// stop ends the current read and all later ones.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	_ = a.pc.SetReadDeadline(past)
}

// outcome returns the reason why an ended handshake has failed, or nil if the connection has
// opened.
func (d *dialer) outcome(ctx context.Context) error {
	switch refusal := locked(d.conn, (*session.Session).Refusal); {
	case ctx.Err() != nil && refusal != nil:
		return fmt.Errorf("refused by an answer that is not authenticated: %w; no other answer from the server: %w", refusal, context.Cause(ctx))
	case ctx.Err() != nil:
		return fmt.Errorf("no answer from the server: %w", context.Cause(ctx))
	case !d.opened():
		return d.conn.err()
	}
	return nil
}
