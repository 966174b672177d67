package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// shardsOnly skips a test where the operating system does not spread datagrams.
func shardsOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("one socket an address")
	}
}

// recorders makes so many handlers.
func recorders(t testing.TB, n int) ([]*recorder, []transport.Handler) {
	all, handlers := make([]*recorder, n), make([]transport.Handler, n)
	for i := range all {
		all[i] = &recorder{t: t}
		handlers[i] = all[i]
	}
	return all, handlers
}

// echoes is a handler that sends all datagrams back, and counts its connections.
type echoes struct {
	recorder
	left chan int
}

func (e *echoes) Closed(c *transport.Conn, err error) {
	e.recorder.Closed(c, err)
	e.left <- 1
}

// TestShards has many clients play over sockets of the operating system: each stays with one shard, all shards have
// some of them, and nothing is lost. That one of four shards gets none of 64 clients has a probability of 4e-8.
func TestShards(t *testing.T) {
	shardsOnly(t)
	const shards, clients, rounds = 4, 64, 20
	left := make(chan int, clients)
	handlers := make([]transport.Handler, shards)
	for i := range handlers {
		e := &echoes{recorder: recorder{t: t}, left: left}
		e.onDatagram = func(c *transport.Conn, b []byte) { _ = c.Send(fmt.Appendf(nil, "%s by %d", b, i)) }
		e.onMessage = func(c *transport.Conn, b []byte) { _ = c.SendReliable(b) }
		handlers[i] = e
	}
	cfg := transport.Config{Shards: shards, Handshakes: 1000}
	l := listen(t, "127.0.0.1:0", cfg, handlers...)
	if l.Shards() != shards {
		t.Fatalf("%d shards", l.Shards())
	}
	homes := make([]string, clients)
	var playing sync.WaitGroup
	for i := range clients {
		playing.Go(func() {
			came := make(texts, 16)
			c, err := transport.Dial(t.Context(), l.Addr().String(), cfg, came)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			for n := range rounds {
				sent := fmt.Sprintf("%d of %d", n, i)
				if err := errors.Join(c.Send([]byte(sent)), c.SendReliable([]byte(sent))); err != nil {
					t.Error(err)
				}
				for range 2 { // the echo of either channel comes first
					text, home, unreliable := strings.Cut(<-came, " by ")
					if text != sent {
						t.Errorf("%q came back, want %q", text, sent)
					}
					if unreliable && n > 0 && home != homes[i] {
						t.Errorf("client %d plays with shards %s and %s", i, homes[i], home)
					}
					if unreliable {
						homes[i] = home
					}
				}
			}
		})
	}
	playing.Wait()
	for range clients {
		<-left
	}
	busy := map[string]bool{}
	for _, home := range homes {
		busy[home] = true
	}
	if len(busy) != shards {
		t.Errorf("%d of %d shards had something to do", len(busy), shards)
	}
	if s := l.Stats(); s.Conns != 0 || s.Open != 0 || s.DatagramsReceived < clients*rounds || s.HandedOver != 0 || s.RoundTrips.Sum == 0 {
		t.Errorf("%+v", s)
	}
}

// texts is a handler that passes on what comes.
type texts chan string

func (texts) Opened(*transport.Conn)                              {}
func (texts) Closed(*transport.Conn, error)                       {}
func (x texts) Datagram(_ *transport.Conn, b []byte, _ time.Time) { x <- string(b) }
func (x texts) Message(_ *transport.Conn, b []byte, _ time.Time)  { x <- string(b) }
func (texts) Tick(time.Time)                                      {}

// TestShardsOfOneLimit has many clients ask several shards at a time for the few places, and for one token's.
func TestShardsOfOneLimit(t *testing.T) {
	shardsOnly(t)
	const shards, places, clients = 4, 8, 48
	rs, handlers := recorders(t, shards)
	cfg := transport.Config{Shards: shards, MaxConns: places, MaxPending: clients, Handshakes: 1000}
	l := listen(t, "127.0.0.1:0", cfg, handlers...)
	conns, refused := make(chan *transport.Conn, clients), make(chan error, clients)
	var dialing sync.WaitGroup
	for range clients {
		dialing.Go(func() {
			c, err := transport.Dial(t.Context(), l.Addr().String(), transport.Config{}, &recorder{t: t})
			if err != nil {
				refused <- err
				return
			}
			conns <- c
		})
	}
	dialing.Wait()
	close(conns)
	close(refused)
	if len(conns) != places || len(refused) != clients-places {
		t.Errorf("%d clients got one of %d places", len(conns), places)
	}
	for err := range refused {
		if !errors.Is(err, transport.ErrServerFull) {
			t.Error(err)
		}
	}
	for c := range conns {
		_ = c.Close()
	}
	opened := 0
	for _, r := range rs {
		o, _, _, _ := r.snapshot()
		opened += len(o)
	}
	if opened > places {
		t.Errorf("%d connections were opened", opened)
	}
}

// sharded is a world whose listener has several shards.
type sharded struct {
	*world
	shards []*recorder
}

func newSharded(t *testing.T, link simnet.Config, cfg transport.Config, shards int) *sharded {
	t.Helper()
	w := &sharded{world: &world{network: newNetwork(t, link), client: &recorder{t: t}}}
	cfg.Network, cfg.Shards = w.network, shards
	w.cfg = cfg
	rs, handlers := recorders(t, shards)
	w.shards = rs
	w.listener = listen(t, serverAddr, cfg, handlers...)
	w.conn = dial(t, w.listener.Addr(), transport.Config{Network: w.network}, w.client)
	for w.server == nil {
		time.Sleep(10 * time.Millisecond)
		for _, r := range rs {
			if opened, _, _, _ := r.snapshot(); len(opened) > 0 {
				w.server = r
			}
		}
	}
	return w
}

// TestMovesBetweenShards moves a client about, so that its datagrams come to other shards than its own, over a link
// that loses, duplicates and reorders.
func TestMovesBetweenShards(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newSharded(t, bad(seed), transport.Config{}, 4)
			s := w.serverConn(t)
			const moves = 8
			for range moves {
				w.play(t, s, time.Second)
				outside, err := w.network.Rebind(w.conn.LocalAddr())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.conn.SendReliable([]byte("moving")); err != nil {
					t.Fatal(err)
				}
				w.play(t, s, 2*time.Second)
				if got := s.RemoteAddr(); got != outside {
					t.Errorf("the server sends to %v, want %v", got, outside)
				}
			}
			if n := w.play(t, s, time.Second); n < 20 {
				t.Errorf("%d of 60 datagrams came in the end", n)
			}
			time.Sleep(5 * time.Second)
			st := w.listener.Stats()
			if st.Open != 1 || st.Conns != 1 || st.HandedOver < 100 || st.Dropped.Overrun != 0 {
				t.Errorf("%+v", st)
			}
			if n := s.Stats().Moves; n != moves {
				t.Errorf("%d moves, want %d", n, moves)
			}
			if _, _, _, messages := w.server.snapshot(); len(messages) != moves {
				t.Errorf("%d of %d messages came", len(messages), moves)
			}
			for _, r := range w.shards {
				if _, _, datagrams, _ := r.snapshot(); r != w.server && len(datagrams) > 0 {
					t.Error("another shard's handler got datagrams")
				}
			}
		})
	}
}

// TestHandedOverAtOnce: a shard that has nothing else to do does not wait for its tick. The client, which hears the
// listener, does not name its session any more: the shard to which its datagrams come knows its address.
func TestHandedOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick = 500 * time.Millisecond
		w := newSharded(t, good, transport.Config{Tick: tick}, 4)
		s := w.serverConn(t)
		came := make(chan time.Time, 1)
		w.server.onDatagram = func(_ *transport.Conn, b []byte) {
			if string(b) == "move" {
				came <- time.Now()
			}
		}
		for moved, tries := 0, 0; moved < 5; tries++ {
			if tries == 50 {
				t.Fatal("the client does not move")
			}
			if _, err := w.network.Rebind(w.conn.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			w.play(t, s, 2*time.Second)
			before := w.listener.Stats()
			time.Sleep(tick / 3) // anywhere between two ticks
			sent, bytes := time.Now(), w.conn.Stats().BytesSent
			if err := w.conn.Send([]byte("move")); err != nil {
				t.Fatal(err)
			}
			if n := w.conn.Stats().BytesSent - bytes; n != transport.HeaderSize+4+transport.SealSize {
				t.Errorf("a datagram of %d bytes: the client names its session", n)
			}
			if flight := (<-came).Sub(sent); flight < 0 || flight > 2*good.Delay+time.Millisecond {
				t.Errorf("the datagram took %v, and the link %v", flight, good.Delay)
			}
			after := w.listener.Stats()
			if after.HandedOver > before.HandedOver {
				moved++
			}
			if after.Dropped != before.Dropped {
				t.Errorf("%+v, then %+v", before.Dropped, after.Dropped)
			}
		}
	})
}

// TestRebindBetweenShards moves a client over sockets of the operating system until its datagrams come to another
// shard, and on from there.
func TestRebindBetweenShards(t *testing.T) {
	shardsOnly(t)
	const shards = 4
	handlers := make([]transport.Handler, shards)
	for i := range handlers {
		handlers[i] = echo{}
	}
	l := listen(t, "127.0.0.1:0", transport.Config{Shards: shards}, handlers...)
	came := make(arrivals, 64)
	c := dial(t, l.Addr(), transport.Config{}, came)
	for moves := 0; moves < 4; {
		if err := c.Rebind(); err != nil {
			t.Fatal(err)
		}
		before := l.Stats().HandedOver
		for range 20 {
			if err := c.SendReliable([]byte("here")); err != nil {
				t.Fatal(err)
			}
			<-came
		}
		if l.Stats().HandedOver > before+20 {
			moves++
		}
	}
	if s := l.Stats(); s.Open != 1 || s.Dropped.Overrun != 0 {
		t.Errorf("%+v", s)
	}
}

// logins is a handler of one of several shards that checks, over all of them, that a client is there once at a time.
type logins struct {
	texts
	t     *testing.T
	mu    *sync.Mutex
	there map[uint64]*transport.Conn
	total *int
	left  chan<- error
}

func (h *logins) Opened(c *transport.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there[c.ClientID()] != nil {
		h.t.Error("a client's connection is opened while its last one is")
	}
	h.there[c.ClientID()] = c
	*h.total++
}

func (h *logins) Closed(c *transport.Conn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there[c.ClientID()] != c {
		h.t.Error("another connection of a client is closed than was opened last")
	}
	delete(h.there, c.ClientID())
	h.left <- err
}

// TestLoginsAtShards has one client log in again and again, from here and there, while the connections before are
// still open: wherever they are, the end of one comes before the beginning of the next.
func TestLoginsAtShards(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			const shards, count = 4, 40
			n := newNetwork(t, simnet.Config{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1, Seed: seed})
			total, left := 0, make(chan error, count)
			mu, there := new(sync.Mutex), map[uint64]*transport.Conn{}
			handlers := make([]transport.Handler, shards)
			for i := range handlers {
				handlers[i] = &logins{t: t, mu: mu, there: there, total: &total, left: left}
			}
			l := listen(t, serverAddr, transport.Config{Network: n, Shards: shards}, handlers...)
			var conns sync.WaitGroup
			for i := range count {
				conns.Go(func() {
					cfg := transport.Config{Network: n, Token: issue(t, 1)}
					if c, err := transport.Dial(t.Context(), serverAddr, cfg, &recorder{t: t}); err == nil {
						if i%5 == 0 {
							_ = c.Close() // while others come
						} else {
							t.Cleanup(func() { _ = c.Close() })
						}
					}
				})
				time.Sleep(time.Duration(i%4) * 50 * time.Millisecond)
			}
			conns.Wait()
			time.Sleep(12 * time.Second) // closes that were lost are found out
			mu.Lock()
			defer mu.Unlock()
			if len(there) > 1 || total < count/4 || len(left) != total-len(there) {
				t.Errorf("%d connections, %d ended, %d are there", total, len(left), len(there))
			}
			if s := l.Stats(); s.Open != len(there) || s.Conns != len(there) {
				t.Errorf("%+v", s)
			}
			replaced := 0
			for range len(left) {
				if errors.Is(<-left, transport.ErrReplaced) {
					replaced++
				}
			}
			if replaced == 0 {
				t.Error("none was replaced")
			}
		})
	}
}

// TestHelloMovesBetweenShards: a hello is known by another shard than the one that answered it first.
func TestHelloMovesBetweenShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		rs, handlers := recorders(t, 4)
		l := listen(t, serverAddr, transport.Config{Network: n, Shards: 4}, handlers...)
		for range 20 {
			m := &migrant{Network: n}
			dial(t, l.Addr(), transport.Config{Network: m}, &recorder{t: t})
		}
		time.Sleep(3 * time.Second)
		opened := 0
		for _, r := range rs {
			o, closed, _, _ := r.snapshot()
			opened += len(o)
			if len(closed) > 0 {
				t.Errorf("%v", closed[0].err)
			}
		}
		if s := l.Stats(); opened != 20 || s.Open != 20 || s.Conns != 20 || s.HandedOver == 0 {
			t.Errorf("%d opened, %+v", opened, s)
		}
	})
}

// migrant is a network on which the address of a client changes behind its back with each of its first hellos that
// has a cookie.
type migrant struct {
	*simnet.Network
	hellos int
}

func (m *migrant) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := m.Network.ListenPacket(addr)
	return &migrating{pc, m}, err
}

type migrating struct {
	transport.PacketConn
	m *migrant
}

func (m *migrating) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	n, err := m.PacketConn.WriteTo(b, to)
	if isHello := b[0]>>6 == 2; isHello && m.m.hellos < 4 {
		if m.m.hellos++; m.m.hellos%2 == 0 {
			_, _ = m.m.Rebind(m.LocalAddr())
		}
	}
	return n, err
}

// broken is a network whose packet connections can be read until it says so.
type broken struct {
	*simnet.Network
	pcs []transport.PacketConn
}

func (b *broken) ListenShards(addr string, n int) ([]transport.PacketConn, error) {
	pcs, err := b.Network.ListenShards(addr, n)
	b.pcs = pcs
	return pcs, err
}

// TestOneShardBreaks: with one of them all end.
func TestOneShardBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &broken{Network: newNetwork(t, good)}
		l, err := transport.Listen(serverAddr, transport.Config{Network: n, Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		rs, handlers := recorders(t, 3)
		served := make(chan error)
		go func() { served <- l.Serve(context.Background(), handlers...) }()
		for range 20 {
			dial(t, l.Addr(), transport.Config{Network: n.Network}, &recorder{t: t})
		}
		time.Sleep(time.Second)
		_ = n.pcs[1].Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		_ = l.Close()
		for i, r := range rs {
			opened, closed, _, _ := r.snapshot()
			if len(opened) == 0 || len(opened) != len(closed) {
				t.Errorf("shard %d: %d opened, %d closed", i, len(opened), len(closed))
			}
		}
		if s := l.Stats(); s.Conns != 0 || s.Open != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// plain is a network that spreads nothing.
type plain struct{ network transport.Network }

func (p plain) ListenPacket(addr string) (transport.PacketConn, error) {
	return p.network.ListenPacket(addr)
}

func TestShardsOfANetworkWithout(t *testing.T) {
	n := newNetwork(t, good)
	var log bytes.Buffer
	cfg := transport.Config{Network: plain{n}, Shards: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	l, err := transport.Listen(serverAddr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if l.Shards() != 1 || !strings.Contains(log.String(), "wanted=3") {
		t.Errorf("%d shards, log %q", l.Shards(), &log)
	}
	_, handlers := recorders(t, 3)
	if err := l.Serve(t.Context(), handlers...); err == nil || !strings.Contains(err.Error(), "got 3 handlers") {
		t.Errorf("three handlers for one shard: %v", err)
	}
	for _, shards := range []int{-1, transport.MaxShards() + 1} {
		cfg.Shards = shards
		if _, err := transport.Listen("127.0.0.1:7001", cfg); err == nil || !strings.Contains(err.Error(), "Config.Shards") {
			t.Errorf("%d shards: %v", shards, err)
		}
	}
}
