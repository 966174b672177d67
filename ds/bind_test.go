package ds

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestListsOfShard verifies that a shard's lists have one entry for each player and RPC, however
// much a player binds and calls, and that nothing remains when the player has left.
func TestListsOfShard(t *testing.T) {
	left := 0
	cfg := Config{Poll: true, TickHz: 60, Limits: Limits{QueueBytes: 64 << 10}, Left: func(*Player, error) { left++ }}
	b := newBench(t, cfg, func(*Player, Frame[testCall]) {}, JitterBuffer{})
	s, other := b.join(0), b.join(0)
	p, h := s.player, s.player.shard
	for range 3 {
		for n := range rpcdelta.MaxRPC + 1 {
			b.srv.bind(p, b.request(n))
		}
	}
	if len(p.bindings.all) != 1 || len(p.bindings.buffers) != 1 || len(b.srv.buffers.all) != 2 {
		t.Errorf("%d bindings, %d buffers, %d in all", len(p.bindings.all), len(p.bindings.buffers), len(b.srv.buffers.all))
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
	if len(b.srv.buffers.all) != 1 || p.bindings.all != nil || p.bindings.buffers != nil {
		t.Errorf("%d buffers, %d bindings and %d buffers of its own after the player has left", len(b.srv.buffers.all), len(p.bindings.all), len(p.bindings.buffers))
	}
	if n := len(b.srv.queue.waiting); n > 1+64<<10/64 {
		t.Errorf("%d jobs wait for Poll", n)
	}
	h.Tick(time.Now())
	if b.srv.Poll(); left != 1 || len(h.due) != 0 || h.due[:2][0] != nil || h.due[:2][1] != nil {
		t.Errorf("left %d times, due are %v", left, h.due[:2])
	}
}

// TestVersions verifies that each rate gets its schema, and that the last maxVersions are kept.
func TestVersions(t *testing.T) {
	typ, err := schema.Compile[testCall]("Call", 0)
	must(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var r rpcShard
		last := map[float64]*schema.Schema{}
		var order []float64 // the last one last
		for range rapid.IntRange(1, 80).Draw(t, "binds") {
			hz := float64(rapid.IntRange(1, 30).Draw(t, "hz"))
			v, err := r.versionOf(typ.Schema(), nil, hz, nil)
			s := v.schema
			if err != nil || s.RateHz() != hz || s.Fingerprint() != typ.Schema().Fingerprint() {
				t.Fatalf("at %v Hz: %v, %v", hz, s, err)
			}
			recent := map[float64]bool{}
			for i := len(order) - 1; i >= 0 && len(recent) < maxVersions; i-- {
				recent[order[i]] = true
			}
			if (last[hz] == s) != recent[hz] {
				t.Fatalf("at %v Hz: compiled again: %v, of the last %v", hz, last[hz] != s, recent)
			}
			if len(r.versions) > maxVersions {
				t.Fatalf("%d are kept", len(r.versions))
			}
			last[hz], order = s, append(order, hz)
		}
	})
	var r rpcShard
	if v, err := r.versionOf(typ.Schema(), nil, typ.Schema().RateHz(), nil); err != nil || v.schema != typ.Schema() {
		t.Errorf("its own rate is compiled: %v", err)
	}
	if _, err := r.versionOf(typ.Schema(), nil, -1, nil); err == nil || len(r.versions) != 1 {
		t.Errorf("an invalid rate: %v, %v", err, r.versions)
	}
}
