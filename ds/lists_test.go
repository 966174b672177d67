package ds

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// TestListsOfShard checks that a shard's lists have one entry for each player and RPC, however much a
// player binds and calls, and that nothing of the player is left after it.
func TestListsOfShard(t *testing.T) {
	b := newBench(t, Config{Poll: true, JitterBuffer: &JitterBuffer{}, QueueBytes: 64 << 10}, func(*Player, Frame[testCall]) {})
	s, other := b.join(0), b.join(0)
	p, h := s.player, s.player.shard
	for range 3 {
		for n := range rpcdelta.MaxRPC + 1 {
			b.srv.bind(p, b.request(n))
		}
	}
	const most = minBindings
	if p.bound() != most || len(p.bindings) > rpcdelta.MaxRPC+1 || len(p.buffers) != most || len(b.srv.buffers.all) != most+1 {
		t.Errorf("%d bindings in %d places, %d buffers, %d in all, want %d and one more", p.bound(), len(p.bindings), len(p.buffers), len(b.srv.buffers.all), most)
	}
	now := time.Now()
	for range 5000 {
		for _, c := range []*sender{s, other} {
			c.player.receive(c.payload(), now, false)
		}
		now = now.Add(time.Millisecond)
	}
	if len(h.due) != 2 || len(h.unpublished) > 2 {
		t.Errorf("%d players are due for acks and %d counts to be published, want 2 and at most 2", len(h.due), len(h.unpublished))
	}
	h.players[p] = struct{}{}
	p.conn.Value = p
	defer func() { p.conn.Value = nil }() // all tests have the same connection
	h.Closed(p.conn, nil)
	if len(b.srv.buffers.all) != 1 || p.bindings != nil || p.buffers != nil {
		t.Errorf("%d buffers, %d bindings and %d buffers of its own after the player has left", len(b.srv.buffers.all), len(p.bindings), len(p.buffers))
	}
	if n := len(b.srv.queue.waiting); n > 1+64<<10/64 {
		t.Errorf("%d entries wait for Poll", n)
	}
}
