package transport

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
)

// desk is a listener of one shard without a network, whose loop is the test.
type desk struct {
	*Listener
	*shard
	pc    *still
	now   time.Time
	step  time.Duration // by which the wall clock was set ahead
	calls calls
}

// wall is the wall clock of the desk and its guests.
func (d *desk) wall() time.Time { return d.now.Add(d.step) }

// calls is a handler that notes its calls.
type calls struct {
	unheard
	opened, datagrams int
	closed            []error
	onOpened          func(*Conn)
}

func (c *calls) Opened(conn *Conn) {
	c.opened++
	if c.onOpened != nil {
		c.onOpened(conn)
	}
}
func (c *calls) Closed(_ *Conn, err error)         { c.closed = append(c.closed, err) }
func (c *calls) Datagram(*Conn, []byte, time.Time) { c.datagrams++ }

// Stats are those of the listener, with all that the desk has received.
func (d *desk) Stats() ListenerStats {
	for _, s := range d.shards {
		s.publish()
	}
	return d.Listener.Stats()
}

func newDesk(tb testing.TB, cfg Config) *desk {
	tb.Helper()
	d := &desk{pc: &still{sent: func([]byte) {}}, now: time.Now()}
	cfg.Network, cfg.wall = oneNetwork{d.pc}, d.wall
	l, err := Listen("", cfg)
	if err != nil {
		tb.Fatal(err)
	}
	d.Listener, d.shard, d.now = l, l.shards[0], time.Now()
	d.handler = &d.calls
	return d
}

// The methods below call the shard's and write what it sends.

func (d *desk) receive(now time.Time, g datagram) {
	d.shard.receive(now, g)
	d.write()
}

func (d *desk) tick(now time.Time) {
	d.shard.tick(now)
	d.write()
}

func (d *desk) endBatch(now time.Time) {
	d.shard.endBatch(now)
	d.write()
}

func (d *desk) write() {
	for _, s := range d.shards {
		s.outbox.write()
	}
}

// guest is a client's session at a desk, and what it sent.
type guest struct {
	*session.Session
	desk *desk
	from netip.AddrPort
	out  [][]byte
}

// The datagrams that a guest sends, in order.
const (
	firstHello = iota
	secondHello
	firstHeartbeat // or data, in this place or later
)

// arrive makes a client at an address that has sent its first hello. The zero token means one that is made
// for it.
func (d *desk) arrive(tb testing.TB, from netip.AddrPort, t token.Token) *guest {
	tb.Helper()
	return d.arriveWith(tb, from, Config{Token: t})
}

func (d *desk) arriveWith(tb testing.TB, from netip.AddrPort, cfg Config) *guest {
	tb.Helper()
	cfg.Timeout, cfg.wall = time.Hour, d.wall
	cfg, err := cfg.withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	request, err := cfg.request(d.pc.LocalAddr())
	if err != nil {
		tb.Fatal(err)
	}
	g := &guest{desk: d, from: from}
	g.Session = session.NewClient(d.now, request, session.Config{
		Timeout: cfg.Timeout,
		Output:  func(_ netip.AddrPort, b []byte) { g.out = append(g.out, bytes.Clone(b)) },
		Buffers: &session.Buffers{},
	})
	return g
}

// visit makes a client that has got its welcome, or whatever it got.
func (d *desk) visit(tb testing.TB, from netip.AddrPort, t token.Token) *guest {
	tb.Helper()
	return d.arrive(tb, from, t).enter()
}

// enter sends the hellos.
func (g *guest) enter() *guest {
	g.deliver(firstHello)
	if len(g.out) > secondHello {
		g.deliver(secondHello)
	}
	return g
}

// open lets the desk know that the guest got its welcome.
func (g *guest) open() *guest {
	g.deliver(firstHeartbeat)
	return g
}

// deliver gives the desk the guest's i-th datagram. Answers reach the guest.
func (g *guest) deliver(i int) { g.deliverFrom(g.from, i) }

func (g *guest) deliverFrom(from netip.AddrPort, i int) {
	g.desk.pc.sent = func(b []byte) { g.Input(g.desk.now, g.desk.pc.LocalAddr(), bytes.Clone(b)) }
	g.desk.receive(g.desk.now, datagram{from, bytes.Clone(g.out[i])})
	g.desk.pc.sent = func([]byte) {}
}

// moveTo sends the guest's newest datagram from another address, and answers the challenges there.
func (g *guest) moveTo(to netip.AddrPort) {
	g.deliverFrom(to, len(g.out)-1)
	g.desk.pc.sent = func(b []byte) { g.Input(g.desk.now, g.desk.pc.LocalAddr(), bytes.Clone(b)) }
	g.desk.now = g.desk.now.Add(time.Second) // the round of challenges is due, and the old address has been silent
	sent := len(g.out)
	g.desk.tick(g.desk.now)
	for i := sent; i < len(g.out); i++ {
		g.deliverFrom(to, i)
	}
}

// issue makes a token for the desk's address.
func (d *desk) issue(tb testing.TB, client uint64, change func(*token.Claims)) token.Token {
	tb.Helper()
	c := token.Claims{
		ClientID: client, Issued: d.wall(), Expires: d.wall().Add(time.Minute), Servers: []netip.AddrPort{d.pc.LocalAddr()},
		UserData: []byte("red team"),
	}
	if change != nil {
		change(&c)
	}
	key := d.cfg.Key
	if key.IsZero() {
		key = token.Development()
	}
	t, err := token.Issue(key.Issuer(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

var guestAddr = netip.MustParseAddrPort("127.0.0.1:4000")

// place returns the i-th of many addresses, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), 4000)
}
