package endpoint

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// neighbors returns a testListener of two shards and a client whose later datagrams arrive at the
// other shard: what opened it.
func neighbors(tb testing.TB) (d *testListener, g *testClient, beside *shard) {
	tb.Helper()
	d = newTestListener(tb, Config{Shards: 2})
	return d, d.visit(tb, clientAddr, 0).open(), d.shards[1]
}

// datagrams returns n datagrams of the client, with long headers.
func (g *testClient) datagrams(tb testing.TB, n int) [][]byte {
	tb.Helper()
	g.Rebound(g.listener.now)
	g.out = nil
	for range n {
		if err := g.Send(time.Now(), []byte("move")); err != nil {
			tb.Fatal(err)
		}
	}
	return g.out
}

// TestMailboxIsBounded forwards datagrams to a shard that does not empty its mailbox.
func TestMailboxIsBounded(t *testing.T) {
	d, g, beside := neighbors(t)
	const more = 10
	forward := func(n int) {
		for _, b := range g.datagrams(t, n) {
			beside.receive(d.now, datagram{on(place(1)), bytes.Clone(b)})
		}
	}
	forward(maxForwarded + more)
	if s := d.Stats(); s.Forwarded != maxForwarded || s.Dropped.Overrun != more || d.calls.datagrams != 0 {
		t.Fatalf("%+v", s)
	}
	if d.endBatch(); d.calls.datagrams != maxForwarded {
		t.Errorf("%d datagrams came", d.calls.datagrams)
	}
	forward(more) // there is room again
	if d.endBatch(); d.calls.datagrams != maxForwarded+more {
		t.Errorf("%d datagrams came", d.calls.datagrams)
	}
	large := append(wire.AppendHeader(nil, wire.Header{Long: true, ID: g.ID()}), make([]byte, wire.MaxDatagram-wire.LongSize)...)
	for range maxForwarded {
		beside.receive(d.now, datagram{on(place(1)), large})
	}
	if s := d.Stats(); s.Dropped.Overrun < maxForwarded/2 || len(d.mailbox.mail.memory) > forwardedMemory {
		t.Errorf("%+v", s)
	}
}

// TestForwardToEndedConn: the connection of a datagram may be over before its shard gets it.
func TestForwardToEndedConn(t *testing.T) {
	d, g, beside := neighbors(t)
	b := g.datagrams(t, 2)
	beside.receive(d.now, datagram{on(clientAddr), b[0]})
	_ = d.conns.get(on(clientAddr)).Close()
	d.advance(0)
	d.endBatch()
	beside.receive(d.now, datagram{on(clientAddr), b[1]})
	if s := d.Stats(); s.Forwarded != 1 || s.Dropped.UnknownSession != 2 || d.calls.datagrams != 0 || len(d.calls.closed) != 1 {
		t.Errorf("%+v, %+v", s, d.calls)
	}
}

// TestShardLearnsAddress: a client that moved is known where its datagrams come to, until it moves
// on or goes.
func TestShardLearnsAddress(t *testing.T) {
	d, g, beside := neighbors(t)
	at := clientAddr
	move := func(to netip.AddrPort, via *shard) {
		t.Helper()
		deliver := func(b []byte) {
			via.receive(d.now, datagram{on(to), bytes.Clone(b)})
			d.endBatch()
		}
		for range 20 {
			b := g.datagrams(t, 1)[0]
			g.answered(func() {
				deliver(b)
				g.out = nil
				d.advance(60 * time.Millisecond)
				for i := 0; i < len(g.out); i++ { // responses, if there were challenges
					deliver(g.out[i])
				}
			})
		}
		at = to
	}
	check := func(known *shard) {
		t.Helper()
		for _, s := range d.shards {
			if c := s.conns.get(on(at)); (c != nil) != (s == known) || c != nil && c.RemoteAddr() != at {
				t.Errorf("at the shard: %v, want %v", c != nil, s == known)
			}
			if n := s.conns.len(); n > 0 && s != known || n > 1 {
				t.Errorf("%d addresses", n)
			}
		}
	}
	check(d.shard)
	for i, via := range []*shard{beside, beside, d.shard, beside, d.shard, d.shard, beside} {
		move(netip.AddrPortFrom(clientAddr.Addr(), uint16(5000+i)), via)
		check(via)
	}
	move(at, d.shard) // the network takes the same address elsewhere
	check(d.shard)
	move(at, beside)
	beside.conns.get(on(at)).CloseWith(session.ErrKicked, "over")
	d.advance(0)
	d.endBatch()
	check(nil)
}

func TestForwardAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	const runs, each = 50, 20
	d, g, beside := neighbors(t)
	b := g.datagrams(t, (runs+3)*each)
	handOver := func() {
		for range each {
			beside.receive(d.now, datagram{on(clientAddr), b[0]})
			b = b[1:]
		}
		d.endBatch()
	}
	handOver()
	handOver() // the box has two memories
	if allocs := allocs.PerRun(runs, handOver); allocs != 0 || d.calls.datagrams != (runs+3)*each {
		t.Errorf("%v allocations, want 0; %d datagrams", allocs, d.calls.datagrams)
	}
}

// roused is a packet connection that counts how often its reader is roused.
type roused struct {
	still
	times int
}

func (w *roused) SetReadDeadline(time.Time) error {
	w.times++
	return nil
}

// TestInterruptedOnce: the first thing that is left rouses a shard, those after it do not.
func TestInterruptedOnce(t *testing.T) {
	d, g, beside := neighbors(t)
	pc := &roused{}
	d.loop.pc = batched(pc)
	for round := 1; round <= 3; round++ {
		for _, b := range g.datagrams(t, 5) {
			beside.receive(d.now, datagram{on(clientAddr), b})
		}
		beside.runOn(d.now, d.shard, func(time.Time) {})
		if pc.times != round {
			t.Errorf("roused %d times, want %d", pc.times, round)
		}
		d.endBatch()
	}
}
