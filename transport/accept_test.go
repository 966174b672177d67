package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// desk is a listener without a network, whose loop is the test.
type desk struct {
	*Listener
	pc    *still
	now   time.Time
	calls calls
}

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

func newDesk(t *testing.T, maxConns int) *desk {
	t.Helper()
	pc := &still{}
	l, err := Listen("", Config{Network: oneNetwork{pc}, MaxConns: maxConns})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Listener: l, pc: pc, now: time.Unix(1, 0)}
	l.handler = &d.calls
	return d
}

// guest is a client's session at a desk, and what it sent.
type guest struct {
	*session.Session
	desk *desk
	from netip.AddrPort
	out  [][]byte
}

// visit makes a client at an address, and lets the desk have its hello. Answers reach the guest.
func (d *desk) visit(from netip.AddrPort, nonce uint64) *guest {
	g := &guest{desk: d, from: from}
	g.Session = session.NewClient(d.now, nonce, session.Config{
		Timeout: DefaultTimeout,
		Output:  func(b []byte) { g.out = append(g.out, bytes.Clone(b)) },
	})
	g.deliver(0)
	return g
}

// deliver gives the desk the guest's i-th datagram.
func (g *guest) deliver(i int) {
	g.desk.pc.sent = func(b []byte) { g.Input(g.desk.now, bytes.Clone(b)) }
	g.desk.receive(g.desk.now, datagram{g.from, g.out[i]})
}

var guestAddr = netip.MustParseAddrPort("127.0.0.1:4000")

func TestCandidateHasAnotherTag(t *testing.T) {
	for range 200 { // two random ids have the same tag once in 32
		d := newDesk(t, 1)
		first := d.visit(guestAddr, 1)
		first.deliver(1)
		second := d.visit(guestAddr, 2)
		if first.Tag() == second.Tag() {
			t.Fatalf("both have tag %d", first.Tag())
		}
	}
}

func TestCandidateReplaces(t *testing.T) {
	d := newDesk(t, 1) // which is full, but not for the address that fills it
	first := d.visit(guestAddr, 1)
	first.deliver(1)
	second := d.visit(guestAddr, 2)
	if second.State() != session.Open || d.calls.opened != 1 || len(d.calls.closed) != 0 {
		t.Fatalf("state %d, %+v", second.State(), d.calls)
	}
	second.deliver(1)
	if d.calls.opened != 2 || len(d.calls.closed) != 1 || !errors.Is(d.calls.closed[0], ErrReplaced) {
		t.Fatalf("%+v", d.calls)
	}
	first.deliver(0) // its hello comes again, late
	if conns := d.Stats().Conns; conns != 1 || len(d.candidates) != 0 || len(d.timers) != 1 {
		t.Errorf("an old hello made a candidate: %d connections, %d timers", conns, len(d.timers))
	}
}

func TestNewestCandidateStays(t *testing.T) {
	d := newDesk(t, 1)
	first := d.visit(guestAddr, 1)
	first.deliver(1)
	second, third := d.visit(guestAddr, 2), d.visit(guestAddr, 3)
	third.deliver(0) // the same hello again changes nothing
	if conns := d.Stats().Conns; conns != 2 {
		t.Errorf("%d connections and candidates, want 2", conns)
	}
	third.deliver(1)
	if d.conns[guestAddr].session.Nonce() != third.Nonce() || d.conns[guestAddr].session.ID() == second.ID() {
		t.Error("the newest candidate did not replace the connection")
	}
}

func TestCandidateInheritsTheAddress(t *testing.T) {
	d := newDesk(t, 1)
	d.visit(guestAddr, 1).deliver(1)
	second := d.visit(guestAddr, 2)
	old := d.conns[guestAddr]
	_ = old.Close()
	d.tick(d.now.Add(DefaultTick))
	if len(d.conns) != 1 || len(d.candidates) != 0 {
		t.Fatalf("%d connections, %d candidates", len(d.conns), len(d.candidates))
	}
	second.deliver(1)
	if d.calls.opened != 2 || !slices.Equal(d.calls.closed, []error{nil}) {
		t.Errorf("%+v", d.calls)
	}
}

func TestNewHelloBeforeTheFirstIsConfirmed(t *testing.T) {
	d := newDesk(t, 1)
	first, second := d.visit(guestAddr, 1), d.visit(guestAddr, 2)
	if conns := d.Stats().Conns; conns != 1 || len(d.timers) != 1 {
		t.Errorf("%d connections, %d timers", conns, len(d.timers))
	}
	second.deliver(1)
	first.deliver(1) // of a session that is gone; its tag may be the second's
	if d.calls.opened != 1 || d.conns[guestAddr].session.Nonce() != 2 {
		t.Errorf("%+v", d.calls)
	}
}

func TestNothingIsDeliveredAfterCloseInOpened(t *testing.T) {
	d := newDesk(t, 1)
	d.calls.onOpened = func(c *Conn) { _ = c.Close() }
	g := d.visit(guestAddr, 1)
	if err := g.Send([]byte("too late")); err != nil {
		t.Fatal(err)
	}
	g.deliver(2) // the heartbeat before it is lost
	if d.calls.opened != 1 || d.calls.datagrams != 0 || !slices.Equal(d.calls.closed, []error{nil}) {
		t.Errorf("%+v", d.calls)
	}
}

func TestCloseEndsAtTheNextTick(t *testing.T) {
	d := newDesk(t, 1)
	d.visit(guestAddr, 1).deliver(1)
	_ = d.conns[guestAddr].Close()
	d.tick(d.now.Add(time.Millisecond))
	if len(d.calls.closed) != 1 || d.Stats().Conns != 0 {
		t.Errorf("%+v", d.calls)
	}
}

func TestSendReliableWakesTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.now = time.Now()
		d.visit(guestAddr, 1).deliver(1)
		c := d.conns[guestAddr]
		if err := c.SendReliable([]byte("x")); err != nil {
			t.Fatal(err)
		}
		d.tick(d.now)
		if wait := c.wake.at.Sub(d.now); wait > DefaultTick {
			t.Errorf("the retransmission waits for %v", wait)
		}
	})
}

func TestListenerDrops(t *testing.T) {
	d := newDesk(t, 1)
	d.pc.sent = func(b []byte) { t.Errorf("answered by %x", b) }
	for _, b := range [][]byte{
		nil, make([]byte, MaxDatagram+1),
		wire.AppendHeader(nil, wire.Header{Kind: wire.HelloKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.WelcomeKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.RefuseKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.UnknownKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind}),
	} {
		d.receive(d.now, datagram{guestAddr, b})
	}
	want := Drops{Malformed: 3, Unexpected: 3, UnknownSession: 1}
	if got := d.Stats().Dropped; got != want || got.Total() != 7 {
		t.Errorf("dropped %+v, want %+v", got, want)
	}
}

// hellos sends that many hellos from addresses that nobody answers from.
func (d *desk) hellos(count int) {
	for i := range count {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), 4000)
		d.visit(from, uint64(1000+i))
	}
}

// TestForgedHellosKeepNobodyOut fills a listener with handshakes that never end.
func TestForgedHellosKeepNobodyOut(t *testing.T) {
	const most = 4
	d := newDesk(t, most)
	first := d.visit(guestAddr, 1)
	first.deliver(1)
	d.hellos(50)
	if s := d.Stats(); s.Open != 1 || s.Conns != most || s.Dropped.Full != 50-(most-1) {
		t.Errorf("%+v", s)
	}
	for i := range most - 1 {
		addr := netip.AddrPortFrom(guestAddr.Addr(), uint16(5000+i))
		d.visit(addr, uint64(10+i)).deliver(1)
		d.hellos(1) // takes the place of a forged one, or is refused
	}
	if s := d.Stats(); s.Open != most || s.Conns != most || d.calls.opened != most || len(d.calls.closed) != 0 || d.unborn.Len() != 0 {
		t.Errorf("%+v, %+v", s, d.calls)
	}
	if d.conns[guestAddr] == nil || len(d.timers) != most {
		t.Errorf("%d timers", len(d.timers))
	}
	_ = d.conns[guestAddr].Close()
	d.tick(d.now.Add(time.Millisecond))
	if s := d.Stats(); s.Open != most-1 || s.Conns != most-1 {
		t.Errorf("after one left: %+v", s)
	}
}

// TestOpenCountsNoCandidates counts a connection and its successor as one.
func TestOpenCountsNoCandidates(t *testing.T) {
	d := newDesk(t, 2)
	d.visit(guestAddr, 1).deliver(1)
	second := d.visit(guestAddr, 2)
	if s := d.Stats(); s.Open != 1 || s.Conns != 2 {
		t.Errorf("with a candidate: %+v", s)
	}
	second.deliver(1)
	if s := d.Stats(); s.Open != 1 || s.Conns != 1 || d.unborn.Len() != 0 {
		t.Errorf("replaced: %+v, %d unborn", s, d.unborn.Len())
	}
}
