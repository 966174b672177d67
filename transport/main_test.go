package transport_test

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

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/internal/reliable"
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
	conn *transport.Conn
	err  error
}

// recorder is a handler that records its calls and verifies that they do not overlap. The
// functions are called, if set, from inside.
type recorder struct {
	onOpened   func(*transport.Conn)
	onDatagram func(*transport.Conn, []byte)
	onMessage  func(*transport.Conn, []byte)
	onTick     func()

	t    testing.TB
	busy atomic.Bool

	mu        sync.Mutex
	opened    []*transport.Conn
	closed    []ending
	datagrams []string
	messages  [][]byte
	ticks     int
}

// enter begins a call; the function that it returns ends it.
func (r *recorder) enter() func() {
	if r.busy.Swap(true) {
		r.t.Error("two calls of a handler at a time")
	}
	return func() { r.busy.Store(false) }
}

func (r *recorder) Opened(c *transport.Conn) {
	defer r.enter()()
	r.mu.Lock()
	r.opened = append(r.opened, c)
	r.mu.Unlock()
	if r.onOpened != nil {
		r.onOpened(c)
	}
}

func (r *recorder) Closed(c *transport.Conn, err error) {
	defer r.enter()()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = append(r.closed, ending{c, err})
}

func (r *recorder) Datagram(c *transport.Conn, b []byte, _ time.Time) {
	defer r.enter()()
	r.mu.Lock()
	r.datagrams = append(r.datagrams, string(b))
	r.mu.Unlock()
	if r.onDatagram != nil {
		r.onDatagram(c, b)
	}
}

func (r *recorder) Message(c *transport.Conn, b []byte, _ time.Time) {
	defer r.enter()()
	r.mu.Lock()
	r.messages = append(r.messages, bytes.Clone(b))
	r.mu.Unlock()
	if r.onMessage != nil {
		r.onMessage(c, b)
	}
}

func (r *recorder) Tick(time.Time) {
	defer r.enter()()
	r.mu.Lock()
	r.ticks++
	r.mu.Unlock()
	if r.onTick != nil {
		r.onTick()
	}
}

// snapshot returns the calls recorded so far.
func (r *recorder) snapshot() (opened []*transport.Conn, closed []ending, datagrams []string, messages [][]byte) {
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
func listen(t testing.TB, addr string, cfg transport.Config, h ...transport.Handler) *transport.Listener {
	t.Helper()
	l, err := transport.Listen(addr, cfg)
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
func dial(t testing.TB, addr netip.AddrPort, cfg transport.Config, h transport.Handler) *transport.Conn {
	t.Helper()
	c, err := transport.Dial(t.Context(), addr.String(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// world is a listener and a client on a network in memory.
type world struct {
	network        *simnet.Network
	cfg            transport.Config
	listener       *transport.Listener
	conn           *transport.Conn
	server, client *recorder
}

// newWorld connects a client. It runs inside a synctest bubble.
func newWorld(t *testing.T, link simnet.Config) *world {
	t.Helper()
	w := &world{network: newNetwork(t, link), server: &recorder{t: t}, client: &recorder{t: t}}
	w.cfg = transport.Config{Network: w.network}
	w.listener = listen(t, serverAddr, w.cfg, w.server)
	w.conn = dial(t, w.listener.Addr(), w.cfg, w.client)
	return w
}

// inWorld runs f with a newWorld in a synctest bubble.
func inWorld(t *testing.T, link simnet.Config, f func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, link)) })
}

// serverConn waits for the server's end of the client's connection.
func (w *world) serverConn(t *testing.T) *transport.Conn {
	t.Helper()
	for range 1000 {
		if opened, _, _, _ := w.server.snapshot(); len(opened) > 0 {
			return opened[len(opened)-1]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server's end does not open")
	return nil
}

// silently runs f while the network drops all datagrams.
func (w *world) silently(t *testing.T, link simnet.Config, f func()) {
	t.Helper()
	cut := simnet.Config{Loss: 1}
	if err := w.network.Set(cut, cut); err != nil {
		t.Fatal(err)
	}
	f()
	if err := w.network.Set(link, link); err != nil {
		t.Fatal(err)
	}
}

// maxMessage is the size of the largest reliable message.
const maxMessage = reliable.MaxMessage
