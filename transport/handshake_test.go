package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

func TestNoStateBeforeACookie(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.arrive(t, clientAddr, token.Token{})
	d.receive(d.now, datagram{clientAddr, g.out[firstHello]})
	hello, err := wire.ParseHello(g.out[firstHello])
	if err != nil {
		t.Fatal(err)
	}
	hello.Message = make([]byte, 200)
	forged := wire.AppendHello(nil, hello)
	hello.Cookie[0] = 1
	badCookie := wire.AppendHello(nil, hello)
	measure := func() {
		d.receive(d.now, datagram{clientAddr, g.out[firstHello]})
		d.receive(d.now, datagram{clientAddr, forged})
		d.receive(d.now, datagram{clientAddr, badCookie})
	}
	if allocs := testing.AllocsPerRun(100, measure); allocs != 0 && !race.Enabled {
		t.Errorf("%v allocations for three hellos, want 0", allocs)
	}
	if s := d.Stats(); s.Conns != 0 || s.Dropped.Cookie == 0 || s.BytesSent > s.BytesReceived {
		t.Errorf("%+v", s)
	}
}

func TestPendingUntilSealed(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, d.issue(t, 7, nil))
	if g.State() != session.Open || d.calls.opened != 0 || len(d.pending) != 1 || d.Stats().Conns != 1 || d.Stats().Open != 0 {
		t.Fatalf("state %d, %+v", g.State(), d.calls)
	}
	g.open()
	c := d.conns.get(clientAddr)
	if d.calls.opened != 1 || len(d.pending) != 0 || c == nil || c.ClientID() != 7 || string(c.UserData()) != "red team" || c.ID() != g.ID() {
		t.Errorf("%+v, %+v", d.calls, c)
	}
}

func TestSameHelloSameWelcome(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, token.Token{})
	var welcomes [][]byte
	note := func(b []byte) { welcomes = append(welcomes, bytes.Clone(b)) }
	d.pc.sent = note
	for range 3 {
		d.receive(d.now, datagram{clientAddr, g.out[secondHello]})
	}
	if len(welcomes) != 3 || !bytes.Equal(welcomes[0], welcomes[2]) || d.Stats().Conns != 1 {
		t.Fatalf("%d welcomes, %d connections", len(welcomes), d.Stats().Conns)
	}
	g.open()
	welcomes, d.pc.sent = nil, note
	d.receive(d.now, datagram{clientAddr, g.out[secondHello]})
	if s := d.Stats(); len(welcomes) != 1 || s.Conns != 1 || s.Open != 1 || s.Dropped.Token != 1 {
		t.Errorf("the hello of an open session was answered by %x: %+v", welcomes, s)
	}
	if g.Input(d.now, d.pc.LocalAddr(), welcomes[0]); g.State() != session.Open {
		t.Errorf("the client took what was not for it: %v", g.Err())
	}
}

// TestHandshakeMoves changes the client's address between its hellos.
func TestHandshakeMoves(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, token.Token{})
	elsewhere := netip.AddrPortFrom(clientAddr.Addr(), 4001)
	again := d.arrive(t, elsewhere, token.Token{}) // stands for the client's repeated hello
	again.out[firstHello] = wire.AppendHello(nil, wire.Hello{Version: wire.Version, Nonce: parseHello(t, g.out[0]).Nonce})
	var retry []byte
	d.pc.sent = func(b []byte) { retry = bytes.Clone(b) }
	d.receive(d.now, datagram{elsewhere, again.out[firstHello]})
	d.now = d.now.Add(time.Second)
	r, err := wire.ParseRetry(retry)
	if err != nil {
		t.Fatal(err)
	}
	h, err := wire.ParseHello(g.out[secondHello])
	if err != nil {
		t.Fatal(err)
	}
	h.Cookie = r.Cookie
	d.receive(d.now, datagram{elsewhere, wire.AppendHello(nil, h)})
	if n := d.Stats().Conns; n != 1 {
		t.Errorf("%d connections", n)
	}
	g.deliverFrom(elsewhere, firstHeartbeat)
	if d.conns.get(elsewhere) == nil || d.conns.get(clientAddr) != nil {
		t.Error("the connection is not where its client is")
	}
}

func TestSameClientReplaces(t *testing.T) {
	d := newTestListener(t, Config{MaxConns: 1}) // which is full, but not for the client that fills it
	d.visit(t, clientAddr, d.issue(t, 1, nil)).open()
	second := d.visit(t, netip.AddrPortFrom(clientAddr.Addr(), 4001), d.issue(t, 1, nil))
	if second.State() != session.Open || d.calls.opened != 1 || len(d.calls.closed) != 0 {
		t.Fatalf("state %d, %+v", second.State(), d.calls)
	}
	other := d.visit(t, netip.AddrPortFrom(clientAddr.Addr(), 4002), d.issue(t, 2, nil))
	if !errors.Is(other.Err(), ErrServerFull) || d.Stats().Dropped.Full != 1 {
		t.Errorf("another client: %v", other.Err())
	}
	second.open()
	if d.calls.opened != 2 || len(d.calls.closed) != 1 || !errors.Is(d.calls.closed[0], ErrReplaced) {
		t.Fatalf("%+v", d.calls)
	}
	if s := d.Stats(); s.Open != 1 || s.Conns != 1 || d.timers.count != 1 || d.conns.len() != 1 || len(d.clients) != 1 {
		t.Errorf("%+v, %d timers", s, d.timers.count)
	}
}

// TestSameClientPending: of the handshakes of one client only the newest counts.
func TestSameClientPending(t *testing.T) {
	d := newTestListener(t, Config{})
	first := d.visit(t, clientAddr, d.issue(t, 1, nil))
	second := d.visit(t, clientAddr, d.issue(t, 1, nil))
	if n := d.Stats().Conns; n != 1 || len(d.hellos) != 1 || len(d.pending) != 1 {
		t.Errorf("%d connections, %d pending", n, len(d.pending))
	}
	first.open()
	if d.calls.opened != 0 {
		t.Error("the older one opened")
	}
	if second.open(); d.calls.opened != 1 {
		t.Error("the newer one did not open")
	}
}

// TestAddressIsTaken connects a client from the address of another one, since a router may reassign
// it.
func TestAddressIsTaken(t *testing.T) {
	d := newTestListener(t, Config{})
	first := d.visit(t, clientAddr, d.issue(t, 1, nil)).open()
	second := d.visit(t, clientAddr, d.issue(t, 2, nil)).open()
	if s := d.Stats(); s.Open != 2 || len(d.calls.closed) != 0 || d.conns.get(clientAddr).ClientID() != 2 {
		t.Fatalf("%+v, %+v", s, d.calls)
	}
	// The first one is found by its id, wherever it is.
	d.now = d.now.Add(time.Second)
	first.Advance(d.now)
	elsewhere := netip.AddrPortFrom(clientAddr.Addr(), 4001)
	first.moveTo(elsewhere)
	if c := d.conns.get(elsewhere); c == nil || c.ClientID() != 1 || d.conns.get(clientAddr).ClientID() != 2 {
		t.Errorf("%v", d.conns)
	}
	if second.State() != session.Open {
		t.Errorf("second: %v", second.Err())
	}
	for _, c := range []*Conn{d.conns.get(elsewhere), d.conns.get(clientAddr)} {
		_ = c.Close()
	}
	d.tick(d.now)
	if d.conns.len()+len(d.ids)+len(d.clients)+d.timers.count != 0 {
		t.Errorf("%v, %v, %v", d.conns, d.ids, d.clients)
	}
}

func TestNothingIsDeliveredAfterCloseInOpened(t *testing.T) {
	d := newTestListener(t, Config{})
	d.calls.onOpened = func(c *Conn) { c.CloseWith("") }
	g := d.visit(t, clientAddr, token.Token{})
	if err := g.Send([]byte("too late")); err != nil {
		t.Fatal(err)
	}
	g.deliver(firstHeartbeat + 1) // the heartbeat before it is lost
	if d.calls.opened != 1 || d.calls.datagrams != 0 || !slices.Equal(d.calls.closed, []error{nil}) {
		t.Errorf("%+v", d.calls)
	}
}

func TestCloseEndsAtTheNextTick(t *testing.T) {
	d := newTestListener(t, Config{})
	d.visit(t, clientAddr, token.Token{}).open()
	_ = d.conns.get(clientAddr).Close()
	d.tick(d.now.Add(time.Millisecond))
	if len(d.calls.closed) != 1 || d.Stats().Conns != 0 {
		t.Errorf("%+v", d.calls)
	}
}

func TestSendReliableWakesTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTestListener(t, Config{})
		d.visit(t, clientAddr, token.Token{}).open()
		c := d.conns.get(clientAddr)
		if err := c.SendReliable([]byte("x")); err != nil {
			t.Fatal(err)
		}
		d.tick(d.now)
		if wait := c.timer.at.Sub(d.now); wait > DefaultTick {
			t.Errorf("the retransmission waits for %v", wait)
		}
	})
}

func TestListenerDrops(t *testing.T) {
	d := newTestListener(t, Config{})
	d.pc.sent = func(b []byte) { t.Errorf("answered by %x", b) }
	for _, b := range [][]byte{
		nil, make([]byte, wire.MaxDatagram+1),
		{0x80},
		{0xff},
		{0x80 | 9}, // a short hello, no form, no type
		wire.AppendWelcome(nil, wire.Welcome{Message: make([]byte, wire.WelcomeSize-9)}),
		wire.AppendRefuse(nil, wire.Refuse{}),
		wire.AppendUnknown(nil, wire.Unknown{}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind, Long: true, ID: 5}),
	} {
		d.receive(d.now, datagram{clientAddr, b})
	}
	want := Drops{Malformed: 5, Unexpected: 3, UnknownSession: 2}
	if got := d.Stats().Dropped; got != want || got.Total() != 10 {
		t.Errorf("dropped %+v, want %+v", got, want)
	}
}

// TestPendingIsBounded fills a listener with handshakes that never end, by clients with good
// tokens.
func TestPendingIsBounded(t *testing.T) {
	const most = 4
	d := newTestListener(t, Config{MaxConns: 100, MaxPending: most})
	for i := range 50 {
		g := d.visit(t, place(i), token.Token{})
		if (g.State() == session.Open) != (i < most) {
			t.Fatalf("testClient %d: state %d", i, g.State())
		}
	}
	if s := d.Stats(); s.Conns != most || s.Dropped.RateLimited != 50-most || d.timers.count != most {
		t.Errorf("%+v", s)
	}
	d.now = d.now.Add(6 * time.Second)
	d.tick(d.now)
	if s := d.Stats(); s.Conns != 0 || len(d.hellos)+len(d.pending)+d.timers.count != 0 {
		t.Errorf("after 6 s: %+v", s)
	}
	if g := d.visit(t, place(100), token.Token{}); g.State() != session.Open {
		t.Errorf("after 6 s: state %d", g.State())
	}
}

// TestPendingIsShared fills a listener with handshakes that never end, from few networks: others
// find a place.
func TestPendingIsShared(t *testing.T) {
	d := newTestListener(t, Config{MaxConns: 100, MaxPending: 16})
	near := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i % 3), byte(i)}), 4000)
	}
	for i := range 30 {
		d.visit(t, near(i), token.Token{})
	}
	if n := len(d.pending); n != 8 {
		t.Errorf("%d handshakes of three networks wait, want half of 16", n)
	}
	for i := range 8 {
		if g := d.visit(t, place(i), token.Token{}); g.State() != session.Open {
			t.Errorf("network %d: state %d", i, g.State())
		}
	}
	if g := d.visit(t, place(8), token.Token{}); g.State() == session.Open || len(d.pending) != 16 {
		t.Errorf("%d handshakes wait", len(d.pending))
	}
}

// TestHandshakesAreLimited verifies the limits of handshakes per network and for all networks.
func TestHandshakesAreLimited(t *testing.T) {
	count := func(d *testListener, at func(i int) netip.AddrPort) (n int) {
		for i := range 100 {
			g := d.visit(t, at(i), token.Token{})
			if g.State() == session.Open {
				g.open()
				n++
			}
		}
		return n
	}
	near := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 9, byte(i)}), 4000)
	}
	d := newTestListener(t, Config{HandshakesPerNetwork: 5, Handshakes: 20})
	if n := count(d, near); n != 10 {
		t.Errorf("one network: %d handshakes at once, want twice 5", n)
	}
	if n := count(d, place); n != 30 {
		t.Errorf("many networks: %d more at once, want twice 20 less 10", n)
	}
	d.now = d.now.Add(time.Second)
	if n := count(d, place); n != 20 {
		t.Errorf("a second later: %d, want 20", n)
	}
	if s := d.Stats(); s.Dropped.RateLimited != 300-60 {
		t.Errorf("%+v", s.Dropped)
	}
}

// TestUnauthenticatedChangesNothing throws rubbish at a connection.
func TestUnauthenticatedChangesNothing(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, token.Token{}).open()
	d.pc.sent = func(b []byte) { t.Errorf("answered by %x", b) }
	next := d.conns.get(clientAddr).timer
	for i := range 200 {
		h := wire.Header{Kind: wire.Kind(i % 8), Long: i%2 == 0, ID: g.ID(), Number: uint32(i * 1000)}
		from := clientAddr
		if h.Long {
			from = place(i)
		}
		d.receive(d.now.Add(time.Second), datagram{from, append(wire.AppendHeader(nil, h), make([]byte, 40)...)})
	}
	if s := d.Stats(); s.Dropped.Unauthenticated != 200 || d.conns.get(clientAddr).timer != next || d.conns.len() != 1 {
		t.Errorf("%+v", s.Dropped)
	}
}
