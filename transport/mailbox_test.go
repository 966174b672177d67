package transport

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// stillNetwork is one whose packet connections are the same for all shards.
type stillNetwork struct{ oneNetwork }

func (n stillNetwork) ListenShards(_ string, count int) ([]PacketConn, error) {
	pcs := make([]PacketConn, count)
	for i := range pcs {
		pcs[i] = n.pc
	}
	return pcs, nil
}

// neighbors returns a testListener of two shards and a client whose later datagrams arrive at the
// other shard: what opened it.
func neighbors(tb testing.TB) (d *testListener, g *testClient, beside *shard) {
	tb.Helper()
	pc := &still{sent: func([]byte) {}}
	l, err := Listen("", Config{Network: stillNetwork{oneNetwork{pc}}, Shards: 2})
	if err != nil {
		tb.Fatal(err)
	}
	d = &testListener{Listener: l, shard: l.shards[0], pc: pc, now: time.Now()}
	d.handler, l.shards[1].handler = &d.calls, unheard{}
	return d, d.visit(tb, clientAddr, token.Token{}).open(), l.shards[1]
}

// datagrams returns n datagrams of the client, with long headers.
func (g *testClient) datagrams(tb testing.TB, n int) [][]byte {
	tb.Helper()
	g.Rebound(g.listener.now)
	g.out = nil
	for range n {
		if err := g.Send([]byte("move")); err != nil {
			tb.Fatal(err)
		}
	}
	return g.out
}

// TestMailboxIsBounded forwards datagrams to a shard that does not empty its mailbox.
func TestMailboxIsBounded(t *testing.T) {
	d, g, beside := neighbors(t)
	const more = 10
	from := netip.AddrPortFrom(clientAddr.Addr(), 4001)
	for _, b := range g.datagrams(t, maxForwarded+more) {
		beside.receive(d.now, datagram{from, bytes.Clone(b)})
	}
	if s := d.Stats(); s.Forwarded != maxForwarded || s.Dropped.Overrun != more || d.calls.datagrams != 0 {
		t.Fatalf("%+v", s)
	}
	d.endBatch(d.now)
	if d.calls.datagrams != maxForwarded {
		t.Errorf("%d datagrams came", d.calls.datagrams)
	}
	for _, b := range g.datagrams(t, more) { // there is room again
		beside.receive(d.now, datagram{from, bytes.Clone(b)})
	}
	d.endBatch(d.now)
	if d.calls.datagrams != maxForwarded+more {
		t.Errorf("%d datagrams came", d.calls.datagrams)
	}
	large := append(wire.AppendHeader(nil, wire.Header{Long: true, ID: g.ID()}), make([]byte, wire.MaxDatagram-wire.LongSize)...)
	for range maxForwarded {
		beside.receive(d.now, datagram{from, large})
	}
	if s := d.Stats(); s.Dropped.Overrun < maxForwarded/2 || len(d.mailbox.mail.memory) > forwardedMemory {
		t.Errorf("%+v", s)
	}
}

// TestForwardToEndedConn: the connection of a datagram may be over before its shard gets it.
func TestForwardToEndedConn(t *testing.T) {
	d, g, beside := neighbors(t)
	b := g.datagrams(t, 2)
	beside.receive(d.now, datagram{clientAddr, b[0]})
	_ = d.conns.get(clientAddr).Close()
	d.tick(d.now)
	d.endBatch(d.now)
	beside.receive(d.now, datagram{clientAddr, b[1]})
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
		for range 20 {
			b := g.datagrams(t, 1)[0]
			d.pc.sent = func(answer []byte) { g.Input(d.now, d.pc.LocalAddr(), bytes.Clone(answer)) }
			deliver := func(b []byte) {
				via.receive(d.now, datagram{to, bytes.Clone(b)})
				d.endBatch(d.now)
				beside.endBatch(d.now)
			}
			deliver(b)
			d.now = d.now.Add(60 * time.Millisecond)
			g.out = nil
			d.tick(d.now)
			for i := 0; i < len(g.out); i++ { // responses, if there were challenges
				deliver(g.out[i])
			}
		}
		at = to
	}
	check := func(known *shard) {
		t.Helper()
		for _, s := range d.shards {
			if c := s.conns.get(at); (c != nil) != (s == known) || c != nil && c.RemoteAddr() != at {
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
	beside.conns.get(at).CloseWith("over")
	d.tick(d.now)
	beside.endBatch(d.now)
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
			beside.receive(d.now, datagram{clientAddr, b[0]})
			b = b[1:]
		}
		d.endBatch(d.now)
	}
	handOver()
	handOver() // the box has two memories
	if allocs := testing.AllocsPerRun(runs, handOver); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
	if d.calls.datagrams != (runs+3)*each {
		t.Errorf("%d datagrams", d.calls.datagrams)
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
			beside.receive(d.now, datagram{clientAddr, b})
		}
		beside.runOn(d.now, d.shard, func(time.Time) {})
		if pc.times != round {
			t.Errorf("roused %d times, want %d", pc.times, round)
		}
		d.endBatch(d.now)
	}
}
