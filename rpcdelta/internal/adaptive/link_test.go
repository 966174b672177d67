package adaptive_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// end is one end of a stream.
type end struct {
	state *adaptive.State
	coder *adaptive.Coder
	known history
}

func newEnd(m *adaptive.Model, ring int) *end {
	return &end{m.NewState(ring), m.NewCoder(), history{}}
}

func (e *end) take(seq uint64, r *adaptive.Row) {
	e.known[seq] = r
	e.state.Take(seq, e.known)
}

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
	has := l.newest >= 0 && int64(seq)-l.newest < int64(l.ring) && l.client.state.Covers(uint64(l.newest))
	base := uint64(max(0, l.newest))
	most := int(seq) + 1
	if has {
		most = int(seq - base)
	}
	n := 1 + r.IntN(min(most, adaptive.MaxRows))
	rows := l.sent[int(seq)+1-n:]
	payload := l.client.coder.Encode(nil, 0, rows, seq, base, has, l.client.state, l.client.known)
	if lost {
		return
	}
	got, err := l.server.coder.Decode(l.out, payload, 0, seq, base, has, l.server.state, l.server.known)
	if err != nil || got != n {
		l.t.Fatalf("frame %d: %d of %d rows, %v", seq, got, n, err)
	}
	for i := range n {
		at := seq + 1 - uint64(n) + uint64(i)
		if !equal(l.out[i], l.sent[at]) {
			l.t.Fatalf("frame %d: got %v, want %v", at, l.out[i], l.sent[at])
		}
		if int64(at) > l.top {
			l.server.take(at, l.sent[at])
			l.pending = append(l.pending, at)
			l.top = int64(at)
		}
	}
}

func (l *link) ack() {
	for _, seq := range l.pending {
		l.client.take(seq, l.sent[seq])
		l.newest = int64(seq)
		if !l.server.state.Covers(seq) {
			continue
		}
		if a, b := l.client.state.Hash(seq), l.server.state.Hash(seq); a != b {
			l.t.Fatalf("after frame %d the states differ: %x and %x", seq, a, b)
		}
	}
	l.pending = l.pending[:0]
}

func TestLinkIsLossless(t *testing.T) {
	models := []*adaptive.Model{adaptive.New(vehicle, 60), adaptive.New(everything, 30)}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 1).Draw(t, "fields")
		ring := rapid.SampledFrom([]int{2, 8, 16, 64}).Draw(t, "ring")
		seed := rapid.Uint64().Draw(t, "seed")
		loss := rapid.IntRange(0, 60).Draw(t, "loss")
		r := rand.New(rand.NewPCG(seed, 1))
		l := &link{t: t, fields: [][]adaptive.Field{vehicle, everything}[k], ring: ring, newest: -1, top: -1}
		l.client, l.server = newEnd(models[k], ring), newEnd(models[k], ring)
		l.out = newRows(l.fields)
		for range rapid.IntRange(1, 300).Draw(t, "frames") {
			l.send(r, r.IntN(100) < loss)
			if r.IntN(3) == 0 {
				l.ack()
			}
			if r.IntN(100) == 0 { // both start anew, and one forgets the frames
				l.client.known = history{}
				l.pending = l.pending[:0]
				l.client.state.Reset()
				l.server.state.Reset()
				l.newest = -1
			}
		}
	})
}

// An old baseline is covered for as long as its ring lasts, and reads the
// state as it was then.
func TestStateOfOldBaselines(t *testing.T) {
	m := adaptive.New(vehicle, 60)
	for _, size := range []int{2, 16, 33, 64} {
		e := newEnd(m, size)
		var hashes []uint16
		for i, row := range walk(400) {
			e.take(uint64(i), row)
			hashes = append(hashes, e.state.Hash(uint64(i)))
			for b := max(0, i-size+2); b <= i; b++ {
				if !e.state.Covers(uint64(b)) {
					t.Fatalf("ring %d: %d is not covered at %d", size, b, i)
				}
				if e.state.Hash(uint64(b)) != hashes[b] {
					t.Fatalf("ring %d: the state of %d changed by %d", size, b, i)
				}
			}
		}
		if e.state.Covers(0) {
			t.Errorf("ring %d: frame 0 is covered for ever", size)
		}
		if hashes[0] == hashes[399] {
			t.Errorf("ring %d: nothing was learned", size)
		}
	}
}

func TestUnknownBaseline(t *testing.T) {
	m := adaptive.New(vehicle, 60)
	e := newEnd(m, 64)
	rows := walk(100)
	for i, row := range rows[:50] {
		e.take(uint64(i), row)
	}
	out := newRows(vehicle)
	for _, base := range []uint64{50, 60, 1 << 40, 1<<64 - 1} {
		if _, err := e.coder.Decode(out, nil, 0, 60, base, true, e.state, e.known); !errors.Is(err, adaptive.ErrBaseline) {
			t.Errorf("baseline %d: %v", base, err)
		}
	}
	if _, err := e.coder.Decode(out, nil, 0, 120, 49, true, e.state, e.known); !errors.Is(err, adaptive.ErrBaseline) {
		t.Errorf("a baseline beyond the ring: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("encoding against an unknown baseline did not panic")
		}
	}()
	e.coder.Encode(nil, 0, rows[60:61], 60, 55, true, e.state, e.known)
}

// Each end reads of the frames only what LearnReach and the ring allow.
func TestReach(t *testing.T) {
	m := adaptive.New(vehicle, 60)
	s, c := m.NewState(0), m.NewCoder()
	rows := walk(300)
	h := &reach{t: t, rows: rows}
	for i := range rows[:299] {
		h.from, h.to = i-adaptive.LearnReach+1, i
		s.Take(uint64(i), h)
		for _, d := range []int{1, 9, 63} {
			if i+d >= 299 {
				continue
			}
			h.from, h.to = i+d-adaptive.MaxRing+1, i
			c.Encode(nil, 0, rows[i+d:i+d+1], uint64(i+d), uint64(i), true, s, h)
		}
	}
}

type reach struct {
	t        *testing.T
	rows     []*adaptive.Row
	from, to int
}

func (r *reach) At(seq uint64) *adaptive.Row {
	if s := int(seq); s < r.from || s > r.to {
		r.t.Fatalf("frame %d was read; only %d to %d may be", seq, r.from, r.to)
	}
	return r.rows[seq]
}
