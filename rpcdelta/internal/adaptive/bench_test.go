package adaptive_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// bench is a stream of vehicle frames, its baseline six frames old.
type bench struct {
	m     *adaptive.Model
	state *adaptive.State
	coder *adaptive.Coder
	known ring
	rows  []*adaptive.Row
	seq   uint64
	batch [adaptive.MaxRows]*adaptive.Row
}

func newBench() *bench {
	m := adaptive.New(vehicle, 60)
	b := &bench{m: m, state: m.NewState(0), coder: m.NewCoder(), rows: walk(4096)}
	for range 1000 {
		b.take()
	}
	return b
}

// row is the frame of a sequence: the walk, there and back, so that it joins.
func (b *bench) row(seq uint64) *adaptive.Row {
	n := uint64(len(b.rows))
	if i := seq & (2*n - 1); i >= n {
		return b.rows[2*n-1-i]
	}
	return b.rows[seq&(n-1)]
}

func (b *bench) take() {
	b.known.put(b.seq, b.row(b.seq))
	b.state.Take(b.seq, &b.known)
	b.seq++
}

const distance = 6

func (b *bench) payload(n int, base uint64) ([]*adaptive.Row, uint64) {
	rows := b.batch[:0]
	newest := base + distance
	for i := range n {
		rows = append(rows, b.row(newest+1-uint64(n)+uint64(i)))
	}
	return rows, newest
}

// learner takes the bench's frames again, with a state of its own.
func (b *bench) learner() func() {
	state := b.m.NewState(0)
	return func() {
		b.known.put(b.seq, b.row(b.seq))
		state.Take(b.seq, &b.known)
		b.seq++
	}
}

func benchmarkEncode(b *testing.B, n int, take bool) {
	s := newBench()
	dst := make([]byte, 0, 400)
	tape := &tape{s}
	first, learn := s.seq, s.learner()
	total, i := 0, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		if take {
			learn()
		}
		rows, newest := s.payload(n, first+i)
		total += len(s.coder.Encode(dst, 0, rows, newest, first+i, true, s.state, tape))
		i = (i + 1) % 2048
	}
	b.ReportMetric(8*float64(total)/float64(b.N), "bits/payload")
}

func BenchmarkEncode(b *testing.B)        { benchmarkEncode(b, 1, false) }
func BenchmarkEncodeAndTake(b *testing.B) { benchmarkEncode(b, 1, true) }
func BenchmarkEncode3(b *testing.B)       { benchmarkEncode(b, 3, true) }

func benchmarkDecode(b *testing.B, n int, take bool) {
	const count = 1024
	s := newBench()
	out := newRows(vehicle)
	tape := &tape{s}
	var in [count][]byte
	for i := range in {
		base := s.seq + uint64(i)
		rows, newest := s.payload(n, base)
		in[i] = s.coder.Encode(nil, 0, rows, newest, base, true, s.state, tape)
	}
	first, learn := s.seq, s.learner()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if take {
			learn()
		}
		base := first + uint64(i)
		if _, err := s.coder.Decode(out, in[i], 0, base+distance, base, true, s.state, tape); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % count
	}
}

// tape knows every frame.
type tape struct{ *bench }

func (t *tape) At(seq uint64) *adaptive.Row { return t.row(seq) }

func BenchmarkDecode(b *testing.B)        { benchmarkDecode(b, 1, false) }
func BenchmarkDecodeAndTake(b *testing.B) { benchmarkDecode(b, 1, true) }
func BenchmarkDecode3(b *testing.B)       { benchmarkDecode(b, 3, true) }

func BenchmarkTake(b *testing.B) {
	s := newBench()
	b.ReportAllocs()
	for b.Loop() {
		s.take()
	}
}

func TestAllocations(t *testing.T) {
	s := newBench()
	dst := make([]byte, 0, 400)
	out := newRows(vehicle)
	if n := testing.AllocsPerRun(500, func() {
		s.take()
		rows, newest := s.payload(3, s.seq-1)
		p := s.coder.Encode(dst, 0, rows, newest, s.seq-1, true, s.state, &s.known)
		if _, err := s.coder.Decode(out, p, 0, newest, s.seq-1, true, s.state, &s.known); err != nil {
			t.Fatal(err)
		}
		s.state.Hash(s.seq - 1)
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if n := testing.AllocsPerRun(10, s.state.Reset); n != 0 {
		t.Errorf("%v allocations a reset", n)
	}
}
