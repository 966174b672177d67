package endpoint

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

func TestPendingUntilSealed(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, 7)
	if g.State() != session.Open || d.calls.opened != 0 || len(d.pending) != 1 || d.Stats().Conns != 1 || d.Stats().Open != 0 {
		t.Fatalf("state %d, %+v", g.State(), d.calls)
	}
	g.open()
	c := d.conns.get(on(clientAddr))
	if d.calls.opened != 1 || len(d.pending) != 0 || c == nil || c.ClientID() != 7 || string(c.UserData()) != "red team" || c.ID() != g.ID() {
		t.Errorf("%+v, %+v", d.calls, c)
	}
}

func TestSameHelloSameWelcome(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, 0)
	var welcomes [][]byte
	hello := func() {
		d.pc.sent = func(b []byte) { welcomes = append(welcomes, bytes.Clone(b)) }
		d.receive(clientAddr, g.out[secondHello])
	}
	hello()
	hello()
	if len(welcomes) != 2 || !bytes.Equal(welcomes[0], welcomes[1]) || d.Stats().Conns != 1 {
		t.Fatalf("%d welcomes, %d connections", len(welcomes), d.Stats().Conns)
	}
	g.open()
	hello()
	if s := d.Stats(); len(welcomes) != 3 || s.Conns != 1 || s.Open != 1 || s.Dropped.Token != 1 {
		t.Errorf("the hello of an open session was answered by %x: %+v", welcomes[2:], s)
	}
	if g.Input(d.now, on(d.pc.LocalAddr()), welcomes[2]); g.State() != session.Open {
		t.Errorf("the client took what was not for it: %v", g.Err())
	}
}

// TestHandshakeMoves changes the client's address between its hellos.
func TestHandshakeMoves(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, 0)
	d.receive(place(1), g.helloFrom(t, d, place(1)))
	if n := d.Stats().Conns; n != 1 {
		t.Errorf("%d connections", n)
	}
	g.deliverFrom(place(1), firstHeartbeat)
	if d.conns.get(on(place(1))) == nil || d.conns.get(on(clientAddr)) != nil {
		t.Error("the connection is not where its client is")
	}
}

// TestSameClientReplaces connects a client twice, from the same address or another one, to a
// listener that is full, but not for the client that fills it.
func TestSameClientReplaces(t *testing.T) {
	for _, from := range []netip.AddrPort{clientAddr, place(1)} {
		d := newTestListener(t, Config{MaxConns: 1})
		d.visit(t, clientAddr, 1).open()
		second := d.visit(t, from, 1)
		if second.State() != session.Open || d.calls.opened != 1 || len(d.calls.closed) != 0 {
			t.Fatalf("state %d, %+v", second.State(), d.calls)
		}
		if other := d.visit(t, place(2), 2); !errors.Is(other.Err(), session.ErrServerFull) || d.Stats().Dropped.Full != 1 {
			t.Errorf("another client: %v", other.Err())
		}
		second.open()
		if d.calls.opened != 2 || len(d.calls.closed) != 1 || !errors.Is(d.calls.closed[0], session.ErrReplaced) {
			t.Fatalf("%+v", d.calls)
		}
		if c := d.conns.get(on(from)); c == nil || c.ID() != second.ID() || d.Stats().Open != 1 || d.entries() != 4 {
			t.Errorf("%d entries, %+v", d.entries(), d.Stats())
		}
	}
}

// TestSameClientPending: of the handshakes of one client only the newest counts, also for a shard
// that has found the connection of an older one before and opens it only now.
func TestSameClientPending(t *testing.T) {
	d := newTestListener(t, Config{})
	first := d.visit(t, clientAddr, 1)
	replaced := d.byID(first.ID())
	second := d.visit(t, clientAddr, 1)
	if n := d.Stats().Conns; n != 1 || len(d.hellos) != 1 || len(d.pending) != 1 {
		t.Errorf("%d connections, %d pending", n, len(d.pending))
	}
	if old, ok := d.open(replaced); ok || old != nil || d.clients[1] != nil {
		t.Errorf("the replaced handshake opens: %v, %v", old, ok)
	}
	replaced.phase = pending
	if first.open(); d.register(d.now, replaced, session.Open) || d.calls.opened != 0 {
		t.Error("the handler hears of the replaced handshake")
	}
	if second.open(); d.calls.opened != 1 || d.clients[1] == nil || d.clients[1].ID() != second.ID() {
		t.Errorf("the newer handshake does not open: %+v", d.calls)
	}
}

// TestAddressIsTaken connects a client from the address of another one, since a router may reassign
// it.
func TestAddressIsTaken(t *testing.T) {
	d := newTestListener(t, Config{})
	first := d.visit(t, clientAddr, 1).open()
	second := d.visit(t, clientAddr, 2).open()
	if s := d.Stats(); s.Open != 2 || len(d.calls.closed) != 0 || d.conns.get(on(clientAddr)).ClientID() != 2 {
		t.Fatalf("%+v, %+v", s, d.calls)
	}
	// The first one is found by its id, wherever it is.
	d.now = d.now.Add(2 * time.Second)
	first.Advance(d.now)
	first.moveTo(place(1))
	if c := d.conns.get(on(place(1))); c == nil || c.ClientID() != 1 || d.conns.get(on(clientAddr)).ClientID() != 2 {
		t.Errorf("%v", d.conns)
	}
	if second.State() != session.Open {
		t.Errorf("second: %v", second.Err())
	}
	for _, c := range []*Conn{d.conns.get(on(place(1))), d.conns.get(on(clientAddr))} {
		_ = c.Close()
	}
	if d.advance(0); d.entries() != 0 || len(d.calls.closed) != 2 {
		t.Errorf("%d entries, %+v", d.entries(), d.calls)
	}
}

func TestNothingIsDeliveredAfterCloseInOpened(t *testing.T) {
	d := newTestListener(t, Config{})
	d.calls.onOpened = func(c *Conn) { c.CloseWith(session.ErrKicked, "") }
	g := d.visit(t, clientAddr, 0)
	if err := g.Send(time.Now(), []byte("too late")); err != nil {
		t.Fatal(err)
	}
	g.deliver(firstHeartbeat + 1) // the heartbeat before it is lost
	if d.calls.opened != 1 || d.calls.datagrams != 0 || !slices.Equal(d.calls.closed, []error{session.ErrKicked}) {
		t.Errorf("%+v", d.calls)
	}
}

func TestListenerDrops(t *testing.T) {
	d := newTestListener(t, Config{})
	d.pc.sent = func(b []byte) { t.Errorf("answered by %x", b) }
	for _, b := range [][]byte{
		nil, make([]byte, wire.MaxDatagram+1),
		{0x80},
		{0xff},
		{0x80 | 9}, // a short hello, a short header, no type
		wire.AppendWelcome(nil, wire.Welcome{Message: make([]byte, wire.WelcomeSize-9)}),
		wire.AppendRefuse(nil, wire.Refuse{}),
		wire.AppendUnknown(nil, wire.Unknown{}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind}),
		wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind, Long: true, ID: 5}),
	} {
		d.receive(clientAddr, b)
	}
	want := transport.Drops{Malformed: 5, Unexpected: 3, UnknownSession: 2}
	if got := d.Stats().Dropped; got != want || got.Total() != 10 {
		t.Errorf("dropped %+v, want %+v", got, want)
	}
}

// TestHintsOfAllShards: a hint is not longer than the datagram and no answer to a close, and the
// rate of hints is that of the listener, however many shards it has.
func TestHintsOfAllShards(t *testing.T) {
	for _, shards := range []int{1, 2, 4} {
		d := newTestListener(t, Config{Shards: shards})
		var hints [][]byte
		d.pc.sent = func(b []byte) { hints = append(hints, bytes.Clone(b)) }
		stray := append(wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind, Number: 77}), 'a')
		d.receive(clientAddr, stray[:len(stray)-1])
		d.receive(clientAddr, append(wire.AppendHeader(nil, wire.Header{Kind: wire.CloseKind}), stray...))
		if len(hints) != 0 {
			t.Errorf("answered by %x", hints)
		}
		for i := range 1000 {
			d.now = d.shards[shards-1].start.Add(time.Duration(i) * time.Millisecond) // the last one that started
			for _, s := range d.shards {
				s.receive(d.now, datagram{on(place(i)), stray})
			}
			d.write()
		}
		if n := len(hints); n < 2*hintsPerSecond-2*shards || n > 2*hintsPerSecond {
			t.Errorf("%d shards send %d hints in a second, want a burst of %d and as many more", shards, n, hintsPerSecond)
		}
		if !bytes.Equal(hints[0][1:], stray[:wire.DataSize]) || len(hints[0]) != len(stray) {
			t.Errorf("hint %x", hints[0])
		}
	}
}

// TestRefusesAreLimited: hellos of another version are refused at the rate of hints.
func TestRefusesAreLimited(t *testing.T) {
	d := newTestListener(t, Config{})
	refuses := 0
	d.pc.sent = func(b []byte) {
		if kind, err := wire.ParseType(b); err == nil && kind == wire.RefuseType {
			refuses++
		}
	}
	for i := range 1000 {
		d.now = d.shards[0].start.Add(time.Duration(i) * time.Millisecond)
		d.receive(place(i), wire.AppendHello(nil, wire.Hello{Version: wire.Version + 1, Nonce: uint64(i)}))
	}
	if refuses < 2*hintsPerSecond-2 || refuses > 2*hintsPerSecond {
		t.Errorf("%d refuses in a second, want a burst of %d and as many more", refuses, hintsPerSecond)
	}
}

// TestUnauthenticatedChangesNothing sends forged datagrams and hellos to a connection, those with
// short headers and hellos from its client's address.
func TestUnauthenticatedChangesNothing(t *testing.T) {
	d := newTestListener(t, Config{})
	g := d.visit(t, clientAddr, 0).open()
	before, entries := d.conns.get(on(clientAddr)).timer, d.entries()
	d.pc.sent = func(b []byte) {
		if kind, err := wire.ParseType(b); err != nil || kind != wire.RetryType {
			t.Errorf("answered by %x", b)
		}
	}
	d.now = d.now.Add(time.Second)
	for i := range 200 {
		h := wire.Header{Kind: wire.Kind(i % 8), Long: i%3 == 0, ID: g.ID(), Number: uint32(i * 40)}
		from := clientAddr
		if h.Long {
			from = place(i)
		}
		d.receive(from, append(wire.AppendHeader(nil, h), make([]byte, 40)...))
		hello := wire.Hello{Version: wire.Version, Nonce: uint64(i), Message: make([]byte, i%2*300)}
		d.receive(clientAddr, wire.AppendHello(nil, hello))
	}
	dropped := d.Stats().Dropped
	if dropped.Unauthenticated != 200 || d.conns.get(on(clientAddr)).timer != before || d.entries() != entries {
		t.Errorf("%d entries, %+v", d.entries(), dropped)
	}
}

func TestTokens(t *testing.T) {
	for want, change := range map[error]func(*token.Claims){
		nil:              nil,
		token.ErrExpired: func(c *token.Claims) { c.Issued, c.Expires = c.Issued.Add(-time.Hour), c.Issued },
		token.ErrWrongServer: func(c *token.Claims) {
			c.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7001")}
		},
		token.ErrStale: func(c *token.Claims) {
			c.Issued = c.Issued.Add(-time.Minute)
			c.Servers = append([]netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7000")}, c.Servers...)
		},
	} {
		key, err := token.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		d := newTestListener(t, Config{Key: key})
		g := d.arrive(t, clientAddr, Config{Token: d.issue(t, 1, change)}).enter()
		refused := uint64(0)
		if want != nil {
			refused = 1
		}
		if s := d.Stats(); !errors.Is(g.Err(), want) || s.Conns != 1-int(refused) || s.Dropped.Token != refused {
			t.Errorf("%v, want %v; %+v", g.Err(), want, s)
		}
	}
}

func TestUsedToken(t *testing.T) {
	d := newTestListener(t, Config{})
	cfg := Config{Token: d.issue(t, 1, nil)}
	first := d.arrive(t, clientAddr, cfg).enter().open()
	second := d.arrive(t, place(1), cfg).enter()
	if !errors.Is(second.Err(), token.ErrUsed) || d.Stats().Open != 1 || d.conns.get(on(clientAddr)) == nil || first.State() != session.Open {
		t.Errorf("got %v", second.Err())
	}
	_ = d.conns.get(on(clientAddr)).Close()
	d.advance(0)
	if third := d.arrive(t, clientAddr, cfg).enter(); !errors.Is(third.Err(), token.ErrUsed) {
		t.Errorf("after the session: %v", third.Err())
	}
	d.now = d.now.Add(time.Minute)
	if fourth := d.arrive(t, clientAddr, cfg).enter(); !errors.Is(fourth.Err(), token.ErrExpired) {
		t.Errorf("after a minute: %v", fourth.Err())
	}
}

// TestWallClockSteps sets the wall clock of a listener and its backend ahead and back. Tokens that
// are valid by the clock as it is then let their clients in, within the limit of handshakes, no
// used token does so again, and connections stay.
func TestWallClockSteps(t *testing.T) {
	const limit = 20
	d := newTestListener(t, Config{Handshakes: limit, HandshakesPerNetwork: limit})
	var used []Config
	for i, ahead := range []time.Duration{time.Hour, 0, -time.Hour, time.Hour} {
		d.ahead = ahead
		d.now = d.now.Add(5 * time.Second)
		for _, cfg := range used {
			err := d.arrive(t, clientAddr, cfg).enter().Err()
			if !errors.Is(err, token.ErrUsed) && !errors.Is(err, token.ErrExpired) {
				t.Errorf("a used token, with the clock %v ahead: %v", ahead, err)
			}
		}
		d.now = d.now.Add(5 * time.Second)
		open := 0
		for k := range 3 * limit {
			cfg := Config{Token: d.issue(t, uint64(100*i+k+1), nil)}
			if g := d.arrive(t, place(100*i+k), cfg).enter(); g.State() == session.Open {
				open++
				g.open()
				used = append(used[:min(len(used), 3*i+2)], cfg)
			}
		}
		if s := d.Stats(); open != 2*limit || s.Open != 2*limit*(i+1) {
			t.Errorf("the clock %v ahead: %d handshakes at once, want %d; %d are open", ahead, open, 2*limit, s.Open)
		}
	}
}

// TestTokenIsUsedByAHandshakeThatDoesNotEnd: neither the session that does not begin nor a copy of
// the hello at another server, which the token is good for too, leaves it to its client, which is
// told so.
func TestTokenIsUsedByAHandshakeThatDoesNotEnd(t *testing.T) {
	first, second := newTestListener(t, Config{}), newTestListener(t, Config{})
	cfg := Config{Token: first.issue(t, 1, nil)}
	g := first.arrive(t, clientAddr, cfg)
	g.deliver(firstHello)
	first.receive(clientAddr, g.out[secondHello]) // the welcome is lost
	first.advance(6 * time.Second)
	if g.deliver(secondHello); !errors.Is(g.Err(), token.ErrUsed) || first.Stats().Conns != 0 {
		t.Errorf("the same hello: %v", g.Err())
	}
	again := first.arrive(t, clientAddr, cfg).enter()
	if !errors.Is(again.Err(), token.ErrUsed) || first.Stats().Conns != 0 {
		t.Errorf("the same server: %v", again.Err())
	}
	second.receive(place(0), g.helloFrom(t, second, place(0)))
	if s := second.Stats(); s.Conns != 1 || s.Open != 0 {
		t.Fatalf("%+v", s)
	}
	if own := second.arrive(t, clientAddr, cfg).enter(); !errors.Is(own.Err(), token.ErrUsed) {
		t.Errorf("the other server: %v", own.Err())
	}
}

// TestForeignTokens shows tokens to a listener that has another token key, another key altogether,
// or the right one when the token was altered on the way.
func TestForeignTokens(t *testing.T) {
	d, strange := newTestListener(t, Config{}), newTestListener(t, Config{})
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	strange.cfg.Key = key
	foreign := strange.issue(t, 1, nil)
	g := d.arrive(t, clientAddr, Config{Token: foreign}).enter() // nobody but the other key's owner can read that hello
	d.now = d.now.Add(time.Second)
	g.Advance(d.now)
	if !errors.Is(g.Err(), token.ErrWrongKey) || d.Stats().Dropped.Token != 1 {
		t.Errorf("another key: %v, %+v", g.Err(), d.Stats().Dropped)
	}
	for name, alter := range map[string]func(*session.Request){
		"altered":           func(t *session.Request) { t.Token[len(t.Token)/2] ^= 1 },
		"another token key": func(t *session.Request) { t.Token = foreign.Sealed() },
		"none":              func(t *session.Request) { t.Token = nil },
		"too much":          func(t *session.Request) { t.Token = make([]byte, session.MaxToken) },
	} {
		request, err := Config{Token: d.issue(t, 1, nil)}.request(d.pc.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		request.Suites = 1 << transport.AES128GCM
		alter(&request)
		if g := d.arriveWith(clientAddr, request).enter(); !errors.Is(g.Err(), token.ErrWrongKey) || d.Stats().Conns != 0 {
			t.Errorf("%s: %v", name, g.Err())
		}
	}
}
