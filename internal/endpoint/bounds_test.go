package endpoint

import (
	"bytes"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

// TestConnsAreBounded fills a listener, and has all of its clients log in again and again: each has
// one connection that is open and one that is pending, and nobody else has any.
func TestConnsAreBounded(t *testing.T) {
	const most = 8
	d := newTestListener(t, Config{MaxConns: most, MaxPending: 100})
	clients := make([]*testClient, most)
	for i := range clients {
		clients[i] = d.visit(t, place(i), uint64(i+1)).open()
	}
	for round := range 5 {
		for i := range clients {
			clients[i] = d.visit(t, place(i), uint64(i+1))
			if other := d.visit(t, place(most+i), uint64(100+i)); !errors.Is(other.Err(), session.ErrServerFull) {
				t.Errorf("another client: %v", other.Err())
			}
		}
		if s := d.Stats(); s.Conns != 2*most || s.Open != most || d.timers.count != 2*most || len(d.hellos)+len(d.pending) != 2*most {
			t.Fatalf("round %d: %+v, %d timers", round, s, d.timers.count)
		}
		d.now = d.now.Add(time.Second)
	}
	for _, g := range clients {
		g.open()
	}
	if s := d.Stats(); s.Conns != most || s.Open != most || d.entries() != 4*most {
		t.Errorf("%+v, %d entries", s, d.entries())
	}
}

// TestMovesAreBounded verifies that a session migrates at most once per round of challenges, which
// also limits the mailbox of a shard that does not empty it. The client keeps one address.
func TestMovesAreBounded(t *testing.T) {
	d, g, beside := neighbors(t)
	const rounds = 1 + 20 // one each 50 ms
	from := clientAddr
	// send delivers what the client sends during f, and its answers.
	send := func(f func()) {
		g.out = nil
		f()
		for k := 0; k < len(g.out); k++ {
			beside.receive(d.now, datagram{on(from), bytes.Clone(g.out[k])})
			d.shard.endBatch(d.now)
			d.write()
		}
	}
	g.answered(func() {
		for i := range 1000 {
			if i%100 == 0 { // time for the rounds that a move takes
				from = netip.AddrPortFrom(clientAddr.Addr(), uint16(5000+i))
			}
			for range 2 { // what is challenged, and the response
				send(func() { g.Rebound(d.now) })
			}
			send(func() { d.advance(time.Millisecond) })
		}
	})
	if s := d.Stats(); s.PathMigrations == 0 || s.PathMigrations > rounds {
		t.Errorf("%d moves in a second, want at most %d", s.PathMigrations, rounds)
	}
	if n := len(beside.mailbox.mail.calls); n == 0 || n > 2*rounds {
		t.Errorf("%d calls wait, want at most two for each of %d moves", n, rounds)
	}
	d.endBatch()
	if n := d.conns.len() + beside.conns.len(); n > 1 {
		t.Errorf("the client has %d addresses", n)
	}
}

// TestDirtyConnsAreBounded: however much is sent to a client in a tick, the next tick looks at its
// connection once, sets its timer, and looks again when more was sent.
func TestDirtyConnsAreBounded(t *testing.T) {
	d := newTestListener(t, Config{})
	d.visit(t, clientAddr, 0).open()
	c := d.conns.get(on(clientAddr))
	send := func() {
		for range 50 {
			if err := c.SendReliable([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		send()
		if taken := d.dirty.take(); len(taken) != 1 || taken[0] != c {
			t.Errorf("%d connections are to be looked at, want 1", len(taken))
		}
	}
	send()
	d.now = time.Now()
	if d.advance(0); c.timer.at.Sub(d.now) > DefaultTick {
		t.Errorf("the retransmission waits for %v", c.timer.at.Sub(d.now))
	}
}

// TestPendingIsBounded fills a listener with handshakes that never end, by clients with good
// tokens.
func TestPendingIsBounded(t *testing.T) {
	const most = 4
	d := newTestListener(t, Config{MaxConns: 100, MaxPending: most})
	for i := range 50 {
		g := d.visit(t, place(i), 0)
		if (g.State() == session.Open) != (i < most) {
			t.Fatalf("testClient %d: state %d", i, g.State())
		}
	}
	if s := d.Stats(); s.Conns != most || s.Dropped.RateLimited != 50-most || d.timers.count != most {
		t.Errorf("%+v", s)
	}
	if d.advance(6 * time.Second); d.entries() != 0 {
		t.Errorf("after 6 s: %d entries", d.entries())
	}
	if g := d.visit(t, place(100), 0); g.State() != session.Open {
		t.Errorf("after 6 s: state %d", g.State())
	}
}

// TestPendingIsShared fills a listener with handshakes that never end, from few networks: others
// find a place.
func TestPendingIsShared(t *testing.T) {
	d := newTestListener(t, Config{MaxConns: 100, MaxPending: 16})
	for i := range 30 {
		d.visit(t, near(i, 3), 0)
	}
	if n := len(d.pending); n != 8 {
		t.Errorf("%d handshakes of three networks wait, want half of 16", n)
	}
	for i := range 9 {
		if g := d.visit(t, place(i), 0); (g.State() == session.Open) != (i < 8) {
			t.Errorf("network %d: state %d", i, g.State())
		}
	}
	if len(d.pending) != 16 {
		t.Errorf("%d handshakes wait", len(d.pending))
	}
}

// TestHandshakesAreLimited verifies the limits of handshakes per network and for all networks.
func TestHandshakesAreLimited(t *testing.T) {
	d := newTestListener(t, Config{HandshakesPerNetwork: 5, Handshakes: 20})
	for _, c := range []struct {
		what  string
		pause time.Duration
		at    func(i int) netip.AddrPort
		want  int
	}{
		{"one network at once: twice 5", 0, func(i int) netip.AddrPort { return near(i, 1) }, 10},
		{"many networks at once: twice 20 less 10", 0, place, 30},
		{"a second later", time.Second, place, 20},
	} {
		d.now = d.now.Add(c.pause)
		n := 0
		for i := range 100 {
			if g := d.visit(t, c.at(i), 0); g.State() == session.Open {
				g.open()
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d handshakes, want %d", c.what, n, c.want)
		}
	}
	if s := d.Stats(); s.Dropped.RateLimited != 300-60 {
		t.Errorf("%+v", s.Dropped)
	}
}

// TestIdleConnectionsSendHeartbeatsAndTimeOut opens connections, one a microsecond.
func TestIdleConnectionsSendHeartbeatsAndTimeOut(t *testing.T) {
	const count = 100
	d := newTestListener(t, Config{})
	start := d.now
	for i := range count {
		d.now = d.now.Add(time.Microsecond)
		d.visit(t, place(i), 0).open()
	}
	sent := 0
	d.pc.sent = func([]byte) { sent++ }
	for d.now.Sub(start) < 4500*time.Millisecond {
		d.advance(DefaultTick)
	}
	if sent != 4*count {
		t.Errorf("%d heartbeats of %d connections in 4.5 s, want 4 each", sent, count)
	}
	for d.now.Sub(start) < defaultTimeout+time.Second {
		d.advance(DefaultTick)
	}
	if d.entries() != 0 {
		t.Errorf("%d entries are left", d.entries())
	}
}

// sessionBudgets are the maximum heap bytes of a connection at its listener before it uses the
// reliable channel. Most of them are the keys of both directions.
var sessionBudgets = map[transport.Suite]float64{transport.AES128GCM: 5120, transport.AES128CTRHMAC8: 6144, transport.ChaCha20SipHash8: 3584}

func TestSessionFitsItsBudget(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const count = 500
	for suite, budget := range sessionBudgets {
		d := newTestListener(t, Config{MaxConns: count, HandshakesPerNetwork: count, Handshakes: count, Suites: []transport.Suite{suite}})
		before := float64(allocs.Heap())
		for i := range count {
			d.arrive(t, place(i), Config{Suites: []transport.Suite{suite}}).enter().open()
		}
		each := (float64(allocs.Heap()) - before) / count // the clients are gone
		if n := d.Stats().Open; n != count {
			t.Fatalf("%d connections", n)
		}
		t.Logf("%v: %.0f bytes", suite, each)
		if each > budget || each < 500 {
			t.Errorf("%v: a session holds %.0f bytes, want at most %.0f", suite, each, budget)
		}
	}
}

// TestSpoofedHellosTakeNoMemory sends hellos from as many addresses, a third of them with a message
// and a third with a cookie too, and sealed datagrams of no session. They allocate nothing.
func TestSpoofedHellosTakeNoMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const count, budget = 300_000, 16 << 10
	d := newTestListener(t, Config{})
	honest := d.visit(t, clientAddr, 0).open()
	message := make([]byte, 300)
	var buf [wire.MaxDatagram]byte
	i := 0
	throw := func() {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(i))
		h := wire.Hello{Version: wire.Version, Nonce: uint64(i)}
		if i%3 > 0 {
			h.Message = message
		}
		if i%3 > 1 {
			h.Cookie[i%len(h.Cookie)] = byte(1 + i%255)
		}
		d.shard.receive(d.now, datagram{on(from), wire.AppendHello(buf[:0], h)})
		stray := wire.AppendHeader(buf[:0], wire.Header{Kind: wire.DataKind, Long: i%2 == 0, ID: uint64(i), Number: uint32(i)})
		d.shard.receive(d.now, datagram{on(from), append(stray, message[:40]...)})
		d.write()
		d.now = d.now.Add(10 * time.Microsecond)
		i++
	}
	if allocs := allocs.PerRun(99, throw); allocs != 0 {
		t.Errorf("%v allocations for a hello and a datagram, want 0", allocs)
	}
	before := float64(allocs.Heap())
	for i < count {
		throw()
	}
	grown := float64(allocs.Heap()) - before
	t.Logf("%.0f bytes after %d hellos and as many datagrams of no session", grown, count)
	if grown > budget {
		t.Errorf("the heap grew by %.0f bytes, want at most %d", grown, budget)
	}
	s := d.Stats()
	if s.Conns != 1 || s.BytesSent > s.BytesReceived || s.Dropped.Cookie != count/3 || s.Dropped.UnknownSession != count {
		t.Errorf("%+v", s)
	}
	if g := d.visit(t, place(0), 0); g.State() != session.Open || honest.State() != session.Open {
		t.Errorf("an honest client: %v, one that was there: %v", g.Err(), honest.Err())
	}
	runtime.KeepAlive(honest)
}
