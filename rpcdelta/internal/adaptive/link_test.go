package adaptive_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// link sends rows over a link that loses some payloads; acks come late.
type link struct {
	t       *rapid.T
	fields  []adaptive.Field
	client  *end
	server  *end
	sent    []*adaptive.Row
	pending []uint64 // taken by the server, not yet known to the client
	newest  int64    // taken by the client, -1 none
	top     int64    // taken by the server, -1 none
	ring    int
	out     []*adaptive.Row
}

func (l *link) send(r *rand.Rand, lost bool) {
	seq := uint64(len(l.sent))
	var old *adaptive.Row
	if seq > 0 {
		old = l.sent[seq-1]
	}
	l.sent = append(l.sent, randomRow(r, l.fields, old))
	base := uint64(max(0, l.newest))
	has := l.newest >= 0 && int64(seq)-l.newest < int64(l.ring)
	if has && !l.client.state.Learn(base, l.client.known) {
		l.t.Fatalf("the client's state is beyond %d", base)
	}
	most := int(seq) + 1
	if has {
		most = int(seq - base)
	}
	n := 1 + r.IntN(min(most, adaptive.MaxRows))
	rows := l.sent[int(seq)+1-n:]
	payload := l.client.encode(nil, rows, seq, base, has)
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
		l.t.Fatalf("frame %d: %d of %d rows, %v", seq, got, n, err)
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

func TestLinkIsLossless(t *testing.T) {
	models := []*adaptive.Model{adaptive.New(vehicleFields, 60), adaptive.New(allKinds, 30)}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 1).Draw(t, "fields")
		ring := rapid.SampledFrom([]int{2, 8, 16, 64}).Draw(t, "ring")
		seed := rapid.Uint64().Draw(t, "seed")
		loss := rapid.IntRange(0, 60).Draw(t, "loss")
		r := rand.New(rand.NewPCG(seed, 1))
		l := &link{t: t, fields: [][]adaptive.Field{vehicleFields, allKinds}[k], ring: ring, newest: -1, top: -1}
		l.client, l.server = newEnd(models[k], l.fields, ring), newEnd(models[k], l.fields, ring)
		l.out = newRows(l.fields)
		for range rapid.IntRange(1, 300).Draw(t, "frames") {
			l.send(r, r.IntN(100) < loss)
			if r.IntN(3) == 0 {
				l.ack()
			}
			if r.IntN(100) == 0 { // both start anew
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

// When a frame is learned makes no difference, so long as those before it are
// still kept.
func TestLearnedLate(t *testing.T) {
	m := adaptive.New(vehicleFields, 60)
	for _, ring := range []int{2, 16, 64} {
		r := rand.New(rand.NewPCG(uint64(ring), 1))
		soon, late := newEnd(m, vehicleFields, ring), newEnd(m, vehicleFields, ring)
		first := soon.state.Hash()
		for i, row := range smoothRows(400) {
			if r.IntN(8) == 0 {
				continue // lost
			}
			soon.learn(uint64(i), row)
			late.accept(uint64(i), row)
			if r.IntN(60) != 0 {
				continue
			}
			if !late.state.Learn(uint64(i), late.known) || late.state.Hash() != soon.state.Hash() {
				t.Fatalf("ring %d: the state of %d depends on when it was learned", ring, i)
			}
			if late.state.Learn(uint64(i-1), late.known) {
				t.Fatalf("ring %d: %d is the last frame learned, after %d", ring, i-1, i)
			}
		}
		if soon.state.Hash() == first {
			t.Errorf("ring %d: nothing was learned", ring)
		}
	}
}

func TestUnknownBaseline(t *testing.T) {
	m := adaptive.New(vehicleFields, 60)
	e := newEnd(m, vehicleFields, 64)
	rows := smoothRows(100)
	for i, row := range rows[:50] {
		e.learn(uint64(i), row)
	}
	out := newRows(vehicleFields)
	for _, base := range []uint64{0, 48, 50, 60, 1 << 40, 1<<64 - 1} {
		if _, err := e.decode(out, nil, 60, base, true); !errors.Is(err, adaptive.ErrBaseline) {
			t.Errorf("baseline %d: %v", base, err)
		}
	}
	if _, err := e.decode(out, nil, 120, 49, true); !errors.Is(err, adaptive.ErrBaseline) {
		t.Errorf("a baseline beyond the ring: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("encoding against an unknown baseline did not panic")
		}
	}()
	e.encode(nil, rows[60:61], 60, 55, true)
}

// Each end reads of the frames only what LearnReach and the ring allow: one that
// keeps no others does the same.
func TestReach(t *testing.T) {
	m := adaptive.New(vehicleFields, 60)
	ints, blobs := frameSize(vehicleFields)
	short := &end{state: m.NewState(0), known: adaptive.NewFrames(ints, blobs, adaptive.LearnReach)}
	long := &end{state: m.NewState(0), known: adaptive.NewFrames(ints, blobs, 300)}
	rows := smoothRows(300)
	for i, row := range rows[:236] {
		seq := uint64(i)
		short.learn(seq, row)
		long.known.Put(seq, row)
		long.state.Learn(seq, long.known)
		if short.state.Hash() != long.state.Hash() {
			t.Fatalf("learning %d reads frames more than LearnReach older", i)
		}
		for _, d := range []int{1, 9, 63} {
			newest := seq + uint64(d)
			want := long.encode(nil, rows[i+d:i+d+1], newest, seq, true)
			only := adaptive.NewFrames(ints, blobs, adaptive.MaxRing)
			for q := max(0, i+d-adaptive.MaxRing+1); q <= i; q++ {
				only.Put(uint64(q), rows[q])
			}
			bounded := &end{state: long.state, known: only}
			if got := bounded.encode(nil, rows[i+d:i+d+1], newest, seq, true); string(got) != string(want) {
				t.Fatalf("coding %d against %d reads frames beyond the ring", newest, i)
			}
		}
	}
}
