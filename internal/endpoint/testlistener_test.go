package endpoint

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// still is a network of one packet connection, which all shards share and which receives nothing.
type still struct{ sent func(b []byte) }

func (s *still) ListenPacket(string) (transport.PacketConn, error) { return s, nil }

func (s *still) ListenShards(_ string, n int) ([]transport.PacketConn, error) {
	return slices.Repeat([]transport.PacketConn{s}, n), nil
}

func (s *still) ReadFrom([]byte) (int, netip.AddrPort, error) { panic("not read") }

func (s *still) WriteTo(p []byte, _ netip.AddrPort) (int, error) {
	s.sent(p)
	return len(p), nil
}

func (s *still) SetReadDeadline(time.Time) error { return nil }
func (s *still) LocalAddr() netip.AddrPort       { return netip.MustParseAddrPort("127.0.0.1:7000") }
func (s *still) Close() error                    { return nil }

// testListener is a listener without a network. The test runs the loop of its first shard.
type testListener struct {
	*Listener
	*shard
	pc    *still
	now   time.Time
	ahead time.Duration // of the wall clock
	calls calls         // of the first shard
}

// calls is a handler that records its calls.
type calls struct {
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
func (c *calls) Message(*Conn, []byte, time.Time)  {}
func (c *calls) Tick(time.Time)                    {}

// Stats returns the statistics of the listener, including those that its shards have not published.
func (d *testListener) Stats() transport.ListenerStats {
	for _, s := range d.shards {
		s.publish()
	}
	return d.Listener.Stats()
}

func newTestListener(tb testing.TB, cfg Config) *testListener {
	tb.Helper()
	d := &testListener{pc: &still{sent: func([]byte) {}}, now: time.Now()}
	cfg.Network, cfg.wall = d.pc, d.wall
	l, err := Listen("", cfg)
	if err != nil {
		tb.Fatal(err)
	}
	d.Listener, d.shard, d.now = l, l.shards[0], time.Now()
	for _, s := range l.shards {
		s.handler = &calls{}
	}
	d.handler = &d.calls
	return d
}

func (d *testListener) wall() time.Time { return d.now.Add(d.ahead) }

// The methods below call the shard's and write what it sends.

func (d *testListener) receive(from netip.AddrPort, b []byte) {
	d.shard.receive(d.now, datagram{on(from), bytes.Clone(b)})
	d.write()
}

// advance lets time pass and ticks.
func (d *testListener) advance(by time.Duration) {
	d.now = d.now.Add(by)
	d.tick(d.now)
	d.write()
}

// endBatch ends the batch of each shard.
func (d *testListener) endBatch() {
	for _, s := range d.shards {
		s.endBatch(d.now)
	}
	d.write()
}

func (d *testListener) write() {
	for _, s := range d.shards {
		s.outbox.write()
	}
}

// entries returns the number of entries for connections in all tables.
func (d *testListener) entries() int {
	return d.timers.count + d.conns.len() + len(d.ids) + len(d.clients) + len(d.hellos) + len(d.pending)
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

// arrive makes a client at an address that has sent its first hello. Without a token it gets one.
func (d *testListener) arrive(tb testing.TB, from netip.AddrPort, cfg Config) *testClient {
	tb.Helper()
	cfg.wall = d.cfg.wall
	cfg, err := cfg.withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	request, err := cfg.request(d.pc.LocalAddr())
	if err != nil {
		tb.Fatal(err)
	}
	return d.arriveWith(from, request)
}

func (d *testListener) arriveWith(from netip.AddrPort, request session.Request) *testClient {
	g := &testClient{listener: d, from: from}
	g.Session = session.NewClient(d.now, request, session.Config{
		Timeout: time.Hour,
		Output:  func(_ session.Path, b []byte) { g.out = append(g.out, bytes.Clone(b)) },
		Buffers: &session.Buffers{},
	})
	return g
}

// visit returns a client that has received the answer to its handshake, with a token of its own if
// client is 0.
func (d *testListener) visit(tb testing.TB, from netip.AddrPort, client uint64) *testClient {
	tb.Helper()
	var cfg Config
	if client != 0 {
		cfg.Token = d.issue(tb, client, nil)
	}
	return d.arrive(tb, from, cfg).enter()
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
	g.answered(func() { g.listener.receive(from, g.out[i]) })
}

// answered passes what the listener sends during f to the client.
func (g *testClient) answered(f func()) {
	g.listener.pc.sent = func(b []byte) { g.Input(g.listener.now, on(g.listener.pc.LocalAddr()), bytes.Clone(b)) }
	f()
	g.listener.pc.sent = func([]byte) {}
}

// moveTo sends the newest datagram from another address, and answers the challenges there.
func (g *testClient) moveTo(to netip.AddrPort) {
	g.deliverFrom(to, len(g.out)-1)
	sent := len(g.out)
	g.answered(func() { g.listener.advance(time.Second) }) // the round is due, and the old address has been silent
	for i := sent; i < len(g.out); i++ {
		g.deliverFrom(to, i)
	}
}

// helloFrom returns the client's second hello with a cookie for an address at a listener.
func (g *testClient) helloFrom(tb testing.TB, d *testListener, from netip.AddrPort) []byte {
	tb.Helper()
	h, err := wire.ParseHello(g.out[secondHello])
	if err != nil {
		tb.Fatal(err)
	}
	d.pc.sent = func(b []byte) {
		retry, err := wire.ParseRetry(b)
		if err != nil {
			tb.Fatal(err)
		}
		h.Cookie = retry.Cookie
	}
	d.receive(from, g.out[firstHello])
	d.pc.sent = func([]byte) {}
	return wire.AppendHello(nil, h)
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

// on returns the path from an address to a listener on one address.
func on(from netip.AddrPort) session.Path { return session.Path{Addr: from} }

// place returns the i-th of many addresses, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), 4000)
}

// near returns the i-th of many addresses in so many networks.
func near(i, networks int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i % networks), byte(i)}), 4000)
}

// len returns the number of addresses with a connection.
func (m *paths) len() int { return len(m.ipv4) + len(m.ipv6) }
