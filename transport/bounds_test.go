package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// TestHintsOfAllShards: the rate of hints is that of the listener, however many shards it has.
func TestHintsOfAllShards(t *testing.T) {
	for _, shards := range []int{1, 2, 4} {
		pc := &still{sent: func([]byte) {}}
		l, err := Listen("", Config{Network: stillNetwork{oneNetwork{pc}}, Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		hints := 0
		pc.sent = func(b []byte) {
			if _, err := wire.ParseUnknown(b); err == nil {
				hints++
			}
		}
		stray := append(wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind, Number: 7}), "of no session"...)
		for i := range 1000 {
			now := l.shards[0].start.Add(time.Duration(i) * time.Millisecond)
			for _, s := range l.shards {
				s.receive(now, datagram{place(i), stray})
				s.outbox.write()
			}
		}
		if hints < 2*hintsPerSecond-2*shards || hints > 2*hintsPerSecond {
			t.Errorf("%d shards send %d hints in a second, want a burst of %d and as many more", shards, hints, hintsPerSecond)
		}
	}
}

// TestReplacedHandshakeDoesNotOpen: a handshake is over when another one of the same client has
// begun, also for a shard that has found its connection before and opens it only now.
func TestReplacedHandshakeDoesNotOpen(t *testing.T) {
	d := newTestListener(t, Config{})
	first := d.visit(t, clientAddr, d.issue(t, 1, nil))
	replaced := d.byID(first.ID())
	second := d.visit(t, place(1), d.issue(t, 1, nil))
	if old, ok := d.open(replaced); ok || old != nil || d.clients[1] != nil {
		t.Errorf("the replaced handshake opens: %v, %v", old, ok)
	}
	if replaced.phase = pending; d.register(d.now, replaced, session.Open) || d.calls.opened != 0 {
		t.Error("the handler hears of the replaced handshake")
	}
	if second.open(); d.calls.opened != 1 || d.clients[1] == nil || d.clients[1].ID() != second.ID() {
		t.Errorf("the newer handshake does not open: %+v", d.calls)
	}
}

// TestConnsAreBounded fills a listener, and has all of its clients log in again and again: each has
// one connection that is open and one that is pending, and nobody else has any.
func TestConnsAreBounded(t *testing.T) {
	const most = 8
	d := newTestListener(t, Config{MaxConns: most, MaxPending: 100})
	clients := make([]*testClient, most)
	for i := range clients {
		clients[i] = d.visit(t, place(i), d.issue(t, uint64(i+1), nil)).open()
	}
	for round := range 5 {
		for i := range clients {
			clients[i] = d.visit(t, place(i), d.issue(t, uint64(i+1), nil))
			other := d.visit(t, place(most+i), d.issue(t, uint64(100+i), nil))
			if !errors.Is(other.Err(), ErrServerFull) {
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
	if s := d.Stats(); s.Conns != most || s.Open != most || d.conns.len() != most || d.timers.count != most {
		t.Errorf("%+v, %d addresses, %d timers", s, d.conns.len(), d.timers.count)
	}
}

// TestMovesAreBounded verifies that a session migrates at most once per round of challenges, which
// also limits the mailbox of a shard that does not empty it. The client keeps one address.
func TestMovesAreBounded(t *testing.T) {
	d, g, beside := neighbors(t)
	const rounds = 1 + 20 // one each 50 ms
	from := clientAddr
	send := func(b []byte) {
		beside.receive(d.now, datagram{from, bytes.Clone(b)})
		d.endBatch(d.now)
	}
	d.pc.sent = func(b []byte) { g.Input(d.now, d.pc.LocalAddr(), bytes.Clone(b)) }
	for i := range 1000 {
		if i%100 == 0 { // time for the rounds that a move takes
			from = netip.AddrPortFrom(clientAddr.Addr(), uint16(5000+i))
		}
		for range 2 { // what is challenged, and the response
			g.out = nil
			g.Rebound(d.now)
			for k := 0; k < len(g.out); k++ {
				send(g.out[k])
			}
		}
		d.now = d.now.Add(time.Millisecond)
		g.out = nil
		d.tick(d.now)
		for k := 0; k < len(g.out); k++ {
			send(g.out[k])
		}
	}
	if s := d.Stats(); s.PathMigrations == 0 || s.PathMigrations > rounds {
		t.Errorf("%d moves in a second, want at most %d", s.PathMigrations, rounds)
	}
	if n := len(beside.mailbox.mail.calls); n == 0 || n > 2*rounds {
		t.Errorf("%d calls wait, want at most two for each of %d moves", n, rounds)
	}
	beside.endBatch(d.now)
	if n := d.conns.len() + beside.conns.len(); n > 1 {
		t.Errorf("the client has %d addresses", n)
	}
}

// TestDirtyConnsAreBounded: however much is sent to a client in a tick, the next tick looks at its
// connection once, and it looks again when more was sent.
func TestDirtyConnsAreBounded(t *testing.T) {
	d := newTestListener(t, Config{})
	d.visit(t, clientAddr, token.Token{}).open()
	c := d.conns.get(clientAddr)
	for range 3 {
		for range 50 {
			if err := c.SendReliable([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if taken := d.dirty.take(); len(taken) != 1 || taken[0] != c {
			t.Errorf("%d connections are to be looked at, want 1", len(taken))
		}
	}
}
