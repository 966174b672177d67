package adaptive_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// link sends frames from a client to a server. Payloads may be lost, and acks are late.
type link struct {
	t       *rapid.T
	fields  []adaptive.Field
	client  *end
	server  *end
	sent    []*schema.Frame
	pending []uint64 // accepted by the server, not yet acked
	newest  int64    // newest frame acked, or -1
	top     int64    // newest frame accepted by the server, or -1
	ring    int
	out     []*schema.Frame
}

func (l *link) send(r *rand.Rand, lost bool) {
	seq := uint64(len(l.sent))
	var old *schema.Frame
	if seq > 0 {
		old = l.sent[seq-1]
	}
	l.sent = append(l.sent, randomFrame(r, l.fields, old))
	base := uint64(max(0, l.newest))
	has := l.newest >= 0 && int64(seq)-l.newest < int64(l.ring)
	if has && !l.client.state.Learn(base, l.client.known) {
		l.t.Fatalf("the client's state is beyond %d", base)
	}
	limit := int(seq) + 1
	if has {
		limit = int(seq - base)
	}
	n := 1 + r.IntN(min(limit, adaptive.MaxFrames))
	frames := l.sent[int(seq)+1-n:]
	payload := l.client.encode(nil, frames, seq, base, has)
	if lost {
		return
	}
	if has && !l.server.state.Learn(base, l.server.known) {
		l.t.Fatalf("the server's state is beyond %d", base)
	}
	if a, b := l.client.state.Hash(), l.server.state.Hash(); has && a != b {
		l.t.Fatalf("up to frame %d the states differ: %x and %x", base, a, b)
	}
	got, err := l.server.decode(l.out, payload, seq, base, has)
	if err != nil || got != n {
		l.t.Fatalf("frame %d: %d of %d frames, %v", seq, got, n, err)
	}
	for i := range n {
		at := seq + 1 - uint64(n) + uint64(i)
		if !equal(l.out[i], l.sent[at]) {
			l.t.Fatalf("frame %d: got %v, want %v", at, l.out[i], l.sent[at])
		}
		if int64(at) > l.top {
			l.server.accept(at, l.out[i])
			l.pending = append(l.pending, at)
			l.top = int64(at)
		}
	}
}

func (l *link) ack() {
	for _, seq := range l.pending {
		l.client.accept(seq, l.sent[seq])
		l.newest = int64(seq)
	}
	l.pending = l.pending[:0]
}

// TestLinkIsLossless checks that the server decodes what the client sent, whatever is lost.
func TestLinkIsLossless(t *testing.T) {
	models := []*adaptive.Model{adaptive.Generic().Compile(vehicleFields), adaptive.Generic().Compile(allKinds)}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 1).Draw(t, "fields")
		ring := rapid.SampledFrom([]int{2, 8, 16, 64}).Draw(t, "ring")
		seed := rapid.Uint64().Draw(t, "seed")
		loss := rapid.IntRange(0, 60).Draw(t, "loss")
		r := rand.New(rand.NewPCG(seed, 1))
		l := &link{t: t, fields: [][]adaptive.Field{vehicleFields, allKinds}[k], ring: ring, newest: -1, top: -1}
		l.client, l.server = newEnd(models[k], l.fields, ring), newEnd(models[k], l.fields, ring)
		l.out = newFrames(l.fields)
		for range rapid.IntRange(1, 300).Draw(t, "frames") {
			l.send(r, r.IntN(100) < loss)
			if r.IntN(3) == 0 {
				l.ack()
			}
			if r.IntN(100) == 0 { // both ends reset
				l.client.known.Reset()
				l.server.known.Reset()
				l.pending = l.pending[:0]
				l.client.state.Reset()
				l.server.state.Reset()
				l.newest = -1
			}
		}
	})
}
