package endpoint_test

import (
	"bytes"
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"))
}

const serverAddr = "127.0.0.1:7000"

// ending is one call of Closed.
type ending struct {
	conn *endpoint.Conn
	err  error
}

// recorder is a handler that records its calls and verifies that they do not overlap. The
// functions are called, if set, from inside.
type recorder struct {
	onOpened   func(*endpoint.Conn)
	onClosed   func(*endpoint.Conn, error)
	onDatagram func(*endpoint.Conn, []byte)
	onMessage  func(*endpoint.Conn, []byte)

	t    testing.TB
	busy atomic.Bool

	mu        sync.Mutex
	opened    []*endpoint.Conn
	closed    []ending
	datagrams []string
	messages  [][]byte
	ticks     []time.Time
}

// call runs the parts of a call of the handler; the first one has the lock.
func (r *recorder) call(record, then func()) {
	if r.busy.Swap(true) {
		r.t.Error("two calls of a handler at a time")
	}
	defer r.busy.Store(false)
	r.mu.Lock()
	record()
	r.mu.Unlock()
	then()
}

func (r *recorder) Opened(c *endpoint.Conn) {
	r.call(func() { r.opened = append(r.opened, c) }, func() {
		if r.onOpened != nil {
			r.onOpened(c)
		}
	})
}

func (r *recorder) Closed(c *endpoint.Conn, err error) {
	r.call(func() { r.closed = append(r.closed, ending{c, err}) }, func() {
		if r.onClosed != nil {
			r.onClosed(c, err)
		}
	})
}

func (r *recorder) Datagram(c *endpoint.Conn, b []byte, _ time.Time) {
	r.call(func() { r.datagrams = append(r.datagrams, string(b)) }, func() {
		if r.onDatagram != nil {
			r.onDatagram(c, b)
		}
	})
}

func (r *recorder) Message(c *endpoint.Conn, b []byte, _ time.Time) {
	r.call(func() { r.messages = append(r.messages, bytes.Clone(b)) }, func() {
		if r.onMessage != nil {
			r.onMessage(c, b)
		}
	})
}

func (r *recorder) Tick(now time.Time) {
	r.call(func() { r.ticks = append(r.ticks, now) }, func() {})
}

func (r *recorder) ticked() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ticks
}

// snapshot returns the calls recorded so far.
func (r *recorder) snapshot() (opened []*endpoint.Conn, closed []ending, datagrams []string, messages [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened, r.closed, r.datagrams, r.messages
}

// newNetwork returns a network with the same link in both directions.
func newNetwork(t testing.TB, cfg simnet.Config) *simnet.Network {
	t.Helper()
	t.Logf("links: %+v", cfg)
	n, err := simnet.NewNetwork(cfg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listen starts a listener that serves until the test ends, with a handler for each shard.
func listen(t testing.TB, addr string, cfg endpoint.Config, h ...endpoint.Handler) *endpoint.Listener {
	t.Helper()
	l, err := endpoint.Listen(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), h...) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l
}

// dial connects until the test ends.
func dial(t testing.TB, addr netip.AddrPort, cfg endpoint.Config, h endpoint.Handler) *endpoint.Conn {
	t.Helper()
	c, err := endpoint.Dial(t.Context(), addr.String(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// world is a listener and a client on a network in memory.
type world struct {
	network        *simnet.Network
	cfg, serverCfg endpoint.Config // of the client and the listener
	listener       *endpoint.Listener
	conn           *endpoint.Conn
	server, client *recorder   // server is the handler of the client's shard
	shards         []*recorder // handlers of the listener
}

// newWorld connects a client, after setup. It runs inside a synctest bubble.
func newWorld(t *testing.T, link simnet.Config, setup ...func(*world)) *world {
	t.Helper()
	w := &world{network: newNetwork(t, link), server: &recorder{t: t}, client: &recorder{t: t}}
	w.cfg = endpoint.Config{Network: w.network}
	w.serverCfg = w.cfg
	for _, f := range setup {
		f(w)
	}
	shards, handlers := recorders(t, max(w.serverCfg.Shards, 1))
	shards[0], handlers[0] = w.server, w.server
	w.shards = shards
	w.listener = listen(t, serverAddr, w.serverCfg, handlers...)
	w.conn = dial(t, w.listener.Addr(), w.cfg, w.client)
	return w
}

// inWorld runs f with a newWorld in a synctest bubble.
func inWorld(t *testing.T, link simnet.Config, f func(*testing.T, *world), setup ...func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, link, setup...)) })
}

// serverConn waits for the server's end of the client's connection.
func (w *world) serverConn(t *testing.T) *endpoint.Conn {
	t.Helper()
	for range 1000 {
		for _, r := range w.shards {
			if opened, _, _, _ := r.snapshot(); len(opened) > 0 {
				w.server = r
				return opened[len(opened)-1]
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server's end does not open")
	return nil
}

// cut makes the network drop all datagrams.
func (w *world) cut(t *testing.T) {
	t.Helper()
	w.set(t, simnet.Config{Loss: 1})
}

func (w *world) set(t *testing.T, link simnet.Config) {
	t.Helper()
	if err := w.network.Set(link, link); err != nil {
		t.Fatal(err)
	}
}

// recorders returns that many handlers, in two forms.
func recorders(t testing.TB, n int) (all []*recorder, handlers []endpoint.Handler) {
	for range n {
		r := &recorder{t: t}
		all, handlers = append(all, r), append(handlers, r)
	}
	return all, handlers
}

// hooked is a network with one shard whose packet connections are replaced by hook.
type hooked struct {
	transport.Network
	hook func(transport.PacketConn) transport.PacketConn
}

func (n hooked) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return n.hook(pc), nil
}

// hookedConn calls its functions, if set, before a read, and before and after a write. An error is
// that of the write.
type hookedConn struct {
	transport.PacketConn
	read  func()
	write func() error
	wrote func(b []byte)
}

func (c *hookedConn) ReadFrom(b []byte) (int, netip.AddrPort, error) {
	if c.read != nil {
		c.read()
	}
	return c.PacketConn.ReadFrom(b)
}

func (c *hookedConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if c.write != nil {
		if err := c.write(); err != nil {
			return 0, err
		}
	}
	if c.wrote != nil {
		defer c.wrote(b)
	}
	return c.PacketConn.WriteTo(b, to)
}

// issue returns a token for the test's server.
func issue(t *testing.T, key token.Key, change func(*token.Claims)) token.Token {
	t.Helper()
	c := token.Claims{
		ClientID: 1, Expires: time.Now().Add(time.Minute), Issued: time.Now(),
		Servers: []netip.AddrPort{netip.MustParseAddrPort(serverAddr)},
	}
	if change != nil {
		change(&c)
	}
	tok, err := token.Issue(key.Issuer(), c)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// echo is a handler that sends everything back. It allocates nothing.
type echo struct{}

func (echo) Opened(*endpoint.Conn)                            {}
func (echo) Closed(*endpoint.Conn, error)                     {}
func (echo) Datagram(c *endpoint.Conn, b []byte, _ time.Time) { _ = c.Send(b) }
func (echo) Message(c *endpoint.Conn, b []byte, _ time.Time)  { _ = c.SendReliable(b) }
func (echo) Tick(time.Time)                                   {}

// bad returns a link with packet loss, duplicates and reordering.
func bad(seed uint64) simnet.Config {
	return simnet.Config{
		Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond,
		Loss: 0.3, Duplicate: 0.1, Seed: seed,
	}
}

var good = simnet.Config{Delay: 20 * time.Millisecond}

// patience is how long a connection over sockets may hear nothing: as long as a busy machine may
// stand still.
const patience = time.Minute

// again ticks when a datagram that has brought no answer may be taken for lost, as it can be over
// loopback too.
func again(t testing.TB) <-chan time.Time {
	t.Helper()
	tick := time.NewTicker(time.Second)
	t.Cleanup(tick.Stop)
	return tick.C
}
