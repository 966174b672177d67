package seq

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestUnwrap(t *testing.T) {
	for _, c := range []struct {
		newest, low uint64
		bits        uint
		want        uint64
	}{
		{0, 0, 16, 0},
		{0, 1, 16, 1},
		{0, 1 << 15, 16, 1 << 15},
		{0, 0xffff, 16, 0xffff}, // -1 does not exist
		{0, 0x8001, 16, 0x8001},
		{1, 0, 16, 0},
		{5, 0xffff, 16, 0xffff},
		{0xfffe, 3, 16, 0x10003},
		{0x10003, 0xfffe, 16, 0xfffe},
		{0x18000, 0, 16, 0x20000}, // half a turn away on both sides: ahead
		{0x17fff, 0, 16, 0x10000},
		{0x18001, 1, 16, 0x20001},
		{0x18000, 0xabcd0001, 16, 0x10001}, // bits above are ignored
		{100, 37, 7, 37},
		{100, 36, 7, 164},
		{6, 0, 1, 6},
		{6, 1, 1, 7},
		{7, 0, 1, 8},
		{0, 42, 64, 42},
		{math.MaxUint64, 42, 64, 42},
		{42, math.MaxUint64, 64, math.MaxUint64},
		{math.MaxUint64, 0, 16, math.MaxUint64 - 0xffff}, // 2^64 does not exist
		{math.MaxUint64, 0xffff, 16, math.MaxUint64},
		{math.MaxUint64 - 1, 0xffff, 16, math.MaxUint64},
	} {
		if got := Unwrap(c.newest, c.low, c.bits); got != c.want {
			t.Errorf("Unwrap(%#x, %#x, %d) = %#x, want %#x", c.newest, c.low, c.bits, got, c.want)
		}
	}
}

// near draws numbers close to a turn of the low bits, to 0 and to 2^64-1 more often than others.
var near = rapid.Custom(func(t *rapid.T) uint64 {
	offset := uint64(rapid.Int64Range(-300, 300).Draw(t, "offset"))
	switch rapid.IntRange(0, 2).Draw(t, "place") {
	case 0:
		return offset
	case 1:
		return 1<<rapid.UintRange(0, 63).Draw(t, "power") + offset
	default:
		return rapid.Uint64().Draw(t, "any")
	}
})

// TestUnwrapWindow draws a number within the window around newest, sends its low bits and expects it back.
func TestUnwrapWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.UintRange(1, 64).Draw(t, "bits")
		newest := near.Draw(t, "newest")
		half := uint64(1) << (bits - 1)
		lowest := newest - min(newest, half-1)
		highest := newest + min(math.MaxUint64-newest, half)
		want := rapid.Uint64Range(lowest, highest).Draw(t, "number")
		junk := rapid.Uint64().Draw(t, "junk") << (bits - 1) << 1
		if got := Unwrap(newest, want&(half<<1-1)|junk, bits); got != want {
			t.Fatalf("got %d", got)
		}
	})
}

// TestUnwrapExists checks, for any low bits, that the result has them and lies within one turn of newest.
func TestUnwrapExists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.UintRange(1, 63).Draw(t, "bits")
		newest := near.Draw(t, "newest")
		turn := uint64(1) << bits
		low := rapid.Uint64Range(0, turn-1).Draw(t, "low")
		got := Unwrap(newest, low, bits)
		if got%turn != low {
			t.Fatalf("got %d, whose low bits are %d", got, got%turn)
		}
		if max(got, newest)-min(got, newest) >= turn {
			t.Fatalf("got %d, a whole turn from %d", got, newest)
		}
	})
}

func TestUnwrapMisuse(t *testing.T) {
	for _, bits := range []uint{0, 65, math.MaxUint} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %d bits", bits)
				}
			}()
			Unwrap(0, 0, bits)
		}()
	}
}

func TestWindowZero(t *testing.T) {
	var w Window
	if w.Newest() != 0 || w.Seen(0) || w.Seen(1) {
		t.Fatal("an empty window has seen something")
	}
	for i, want := range []Verdict{New, Duplicate} {
		if got := w.Mark(0); got != want || !w.Seen(0) {
			t.Fatalf("mark %d of 0: %d", i, got)
		}
	}
	w = Window{}
	for _, c := range []struct {
		n    uint64
		want Verdict
	}{{1000, New}, {0, Late}, {937, New}, {936, Late}, {937, Duplicate}, {math.MaxUint64, New}, {1000, Late}} {
		if got := w.Mark(c.n); got != c.want {
			t.Fatalf("Mark(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

func TestWindowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		marked := map[uint64]bool{}
		newest := uint64(0)
		at := near.Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "marks") {
			n := at + uint64(rapid.Int64Range(-70, 70).Draw(t, "step"))
			want := New
			switch {
			case len(marked) > 0 && newest > n && newest-n >= Span:
				want = Late
			case marked[n]:
				want = Duplicate
			}
			if got := w.Mark(n); got != want {
				t.Fatalf("Mark(%d) = %d, want %d", n, got, want)
			}
			if want == New {
				marked[n] = true
				newest = max(newest, n)
				at = n
			}
			if w.Newest() != newest {
				t.Fatalf("Newest() = %d, want %d", w.Newest(), newest)
			}
			for q := newest - 80; q != newest+3; q++ {
				inside := q <= newest && newest-q < Span
				if got, want := w.Seen(q), inside && marked[q]; got != want {
					t.Fatalf("Seen(%d) = %v with newest %d", q, got, newest)
				}
			}
		}
	})
}

func TestNoAllocations(t *testing.T) {
	var w Window
	n := uint64(0)
	if a := testing.AllocsPerRun(100, func() {
		n = Unwrap(n, n+3, 7)
		w.Mark(n)
		w.Seen(n - 1)
	}); a != 0 {
		t.Errorf("%v allocations a run", a)
	}
}

func BenchmarkUnwrapMark(b *testing.B) {
	var w Window
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n = Unwrap(n, n+1, 16)
		w.Mark(n)
	}
}
