package transport

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// testListener is a listener of one shard without a network. The test runs its loop.
type testListener struct {
	*Listener
	*shard
	pc    *still
	now   time.Time
	step  time.Duration // by which the wall clock was set ahead
	calls calls
}

// wall returns the wall-clock time of the listener and its clients.
func (d *testListener) wall() time.Time { return d.now.Add(d.step) }

// calls is a handler that records its calls.
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

// Stats returns the statistics of the listener, including those that its shards have not published.
func (d *testListener) Stats() ListenerStats {
	for _, s := range d.shards {
		s.publish()
	}
	return d.Listener.Stats()
}

func newTestListener(tb testing.TB, cfg Config) *testListener {
	tb.Helper()
	d := &testListener{pc: &still{sent: func([]byte) {}}, now: time.Now()}
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

func (d *testListener) receive(now time.Time, g datagram) {
	d.shard.receive(now, g)
	d.write()
}

func (d *testListener) tick(now time.Time) {
	d.shard.tick(now)
	d.write()
}

func (d *testListener) endBatch(now time.Time) {
	d.shard.endBatch(now)
	d.write()
}

func (d *testListener) write() {
	for _, s := range d.shards {
		s.outbox.write()
	}
}

// testClient is a client's session with a [testListener], and the datagrams that it sent.
type testClient struct {
	*session.Session
	listener *testListener
	from     netip.AddrPort
	out      [][]byte
}

// Indices of the datagrams that a client sends.
const (
	firstHello = iota
	secondHello
	firstHeartbeat // or data, in this place or later
)

// arrive makes a client at an address that has sent its first hello. The zero token means one that
// is made for it.
func (d *testListener) arrive(tb testing.TB, from netip.AddrPort, t token.Token) *testClient {
	tb.Helper()
	return d.arriveWith(tb, from, Config{Token: t})
}

func (d *testListener) arriveWith(tb testing.TB, from netip.AddrPort, cfg Config) *testClient {
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
	g := &testClient{listener: d, from: from}
	g.Session = session.NewClient(d.now, request, session.Config{
		Timeout: cfg.Timeout,
		Output:  func(_ netip.AddrPort, b []byte) { g.out = append(g.out, bytes.Clone(b)) },
		Buffers: &session.Buffers{},
	})
	return g
}

// visit returns a client that has received the answer to its handshake.
func (d *testListener) visit(tb testing.TB, from netip.AddrPort, t token.Token) *testClient {
	tb.Helper()
	return d.arrive(tb, from, t).enter()
}

// enter sends the hellos.
func (g *testClient) enter() *testClient {
	g.deliver(firstHello)
	if len(g.out) > secondHello {
		g.deliver(secondHello)
	}
	return g
}

// open sends the first datagram after the welcome, which opens the connection.
func (g *testClient) open() *testClient {
	g.deliver(firstHeartbeat)
	return g
}

// deliver passes the client's i-th datagram to the listener, and its answers to the client.
func (g *testClient) deliver(i int) { g.deliverFrom(g.from, i) }

func (g *testClient) deliverFrom(from netip.AddrPort, i int) {
	g.listener.pc.sent = func(b []byte) { g.Input(g.listener.now, g.listener.pc.LocalAddr(), bytes.Clone(b)) }
	g.listener.receive(g.listener.now, datagram{from, bytes.Clone(g.out[i])})
	g.listener.pc.sent = func([]byte) {}
}

// moveTo sends the newest datagram from another address, and answers the challenges there.
func (g *testClient) moveTo(to netip.AddrPort) {
	g.deliverFrom(to, len(g.out)-1)
	g.listener.pc.sent = func(b []byte) { g.Input(g.listener.now, g.listener.pc.LocalAddr(), bytes.Clone(b)) }
	g.listener.now = g.listener.now.Add(time.Second) // the round of challenges is due, and the old address has been silent
	sent := len(g.out)
	g.listener.tick(g.listener.now)
	for i := sent; i < len(g.out); i++ {
		g.deliverFrom(to, i)
	}
}

// issue returns a token for the listener's address.
func (d *testListener) issue(tb testing.TB, client uint64, change func(*token.Claims)) token.Token {
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

var clientAddr = netip.MustParseAddrPort("127.0.0.1:4000")

// place returns the i-th of many addresses, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), 4000)
}

// len returns the number of addresses with a connection.
func (m *addresses) len() int { return len(m.ipv4) + len(m.ipv6) }

func parseHello(tb testing.TB, b []byte) wire.Hello {
	tb.Helper()
	h, err := wire.ParseHello(b)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}
