package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// dialerBuffers are shared by all dialed connections: of thousands in a process few send at the same time, and
// the others need not hold one.
var dialerBuffers session.Buffers

// dialer is the owner and the loop of one dialed connection.
type dialer struct {
	loop
	conn    *Conn
	network Network
	remote  netip.AddrPort
	socket  *socket
	handler Handler
	log     *slog.Logger
	sent    sentCounters
	alarm   alarm
	rescue  rescue
	ready   chan struct{} // closed after Opened has returned
}

// Dial connects to the listener at addr ("host:port"). It returns when the connection is open and
// [Handler.Opened] has returned, or with an error when the listener refuses ([ErrServerFull] and the others
// there), when it does not answer for [Config.Timeout] ([ErrTimeout]), or when ctx is done. The connection is
// encrypted and authenticated: it is with the listener that has the key which [Config.Token] names.
// The connection then lives until it is closed from either end or breaks; ctx has no more say in it.
// If ctx is done just when the connection opens, h sees it opened and closed and Dial returns an error.
func Dial(ctx context.Context, addr string, cfg Config, h Handler) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	remote, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	ticket, err := cfg.ticket(remote)
	if err != nil {
		return nil, err
	}
	pc, err := cfg.Network.ListenPacket(localFor(remote))
	if err != nil {
		return nil, err
	}
	d := newDialer(pc, ticket, cfg, h)
	go outlast(d.serve)
	stop := context.AfterFunc(ctx, d.stop)
	defer stop()
	select {
	case <-d.ready:
	case <-d.done:
	}
	if ctx.Err() != nil {
		_ = d.conn.Close()
		return nil, fmt.Errorf("transport: dialing %v: %w", remote, context.Cause(ctx))
	}
	if !d.opened() {
		return nil, fmt.Errorf("transport: dialing %v: %w", remote, d.conn.err())
	}
	return d.conn, nil
}

// ticket returns what the session needs to ask for admission.
func (c Config) ticket(remote netip.AddrPort) (session.Ticket, error) {
	t, err := c.token(remote)
	if err != nil {
		return session.Ticket{}, err
	}
	return session.Ticket{
		Remote: remote, ServerKey: t.ServerKey(), Token: t.Sealed(), Suites: c.offer(), Nonce: randomID(),
	}, nil
}

func newDialer(pc PacketConn, t session.Ticket, cfg Config, h Handler) *dialer {
	s := newSocket(pc)
	d := &dialer{
		network: cfg.Network,
		remote:  t.Remote,
		socket:  s,
		handler: h,
		log:     cfg.Logger,
		ready:   make(chan struct{}),
	}
	d.loop = newLoop(s, cfg.Tick, dialerBatch, &d.sent, cfg.Logger)
	d.alarm.pc = s
	c := &Conn{owner: d, pc: s, outbox: &d.outbox}
	c.session = session.NewClient(time.Now(), t, session.Config{
		Timeout: cfg.Timeout, Output: c.write, Buffers: &dialerBuffers, KeyLog: cfg.keyLog(),
	})
	d.conn = c
	return d
}

// serve is the connection's goroutine. If a handler ends it, another one calls serve again.
func (d *dialer) serve() {
	err := d.run()
	d.conn.finish(wire.CloseNormal, err)
	d.conn.bury(d.handler)
	// Nothing can be done about an error of closing a packet connection.
	_ = d.pc.Close()
	d.log.Debug("connection ended", "remote", d.remote, "cause", d.conn.err())
	close(d.done)
}

// run reads datagrams and sleeps until something is due, until the connection is stopped: there may be thousands
// of them in a process, and most have nothing to do most of the time. The error is the packet connection's.
func (d *dialer) run() error {
	for {
		if err := d.alarm.set(d.next); err != nil {
			return err
		}
		// A stop that comes before this is seen here, a later one ends the read.
		if d.stopped.Load() {
			return nil
		}
		n, err := d.pc.ReadBatch(d.batch)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			if d.stopped.Load() {
				return nil
			}
			return err
		}
		d.handle(d, time.Now(), d.batch[:n], true)
	}
}

// next returns when the session wants to be advanced.
func (d *dialer) next() time.Time {
	next, _ := d.conn.schedule()
	return next
}

func (d *dialer) receive(now time.Time, g datagram) {
	if g.from != d.remote {
		return
	}
	c := d.conn
	c.deliver(now, c.input(now, g.from, g.b), d.handler)
}

func (d *dialer) take(time.Time) {} // nobody leaves anything

// tick follows whatever has come, or the alarm.
func (d *dialer) tick(now time.Time) {
	d.conn.advance(now)
	d.check(now)
	if since, due := d.alarm.take(now); due && !d.stopped.Load() {
		if d.interval != OnWake {
			d.alarm.tickBy(nextTick(since, now, d.interval))
		}
		d.handler.Tick(now)
	}
	d.watchSending(now)
	if failing, deaf := d.rescue.due(now, &d.sent), d.conn.takeDeaf(); failing || deaf {
		err := d.rebind(d.conn)
		d.log.Debug("opened another socket", "remote", d.remote, "sends_fail", failing, "unanswered", deaf, "error", err)
	}
}

// check looks whether the connection has opened, which Dial waits for, or ended.
func (d *dialer) check(now time.Time) {
	if d.conn.life == alive && !d.opened() {
		d.log.Debug("connected", "remote", d.remote)
		if d.interval != OnWake {
			d.alarm.tickBy(now.Add(d.interval))
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

// stop makes run return soon. It can be called from anywhere, more than once.
func (d *dialer) stop() {
	d.stopped.Store(true)
	d.alarm.end()
}

func (d *dialer) rescheduled(*Conn) { d.alarm.by(d.next()) }

func (d *dialer) wake(at time.Time) { d.alarm.tickBy(at) }

// rebind opens another packet connection and goes on with it.
func (d *dialer) rebind(c *Conn) error {
	pc, err := d.network.ListenPacket(localFor(d.remote))
	if err != nil {
		return err
	}
	if err := d.socket.swap(pc); err != nil {
		return err
	}
	c.moved(time.Now())
	d.rescheduled(c)
	return nil
}

func (d *dialer) closed(*Conn) { d.stop() }

func (d *dialer) wait() { <-d.done }
