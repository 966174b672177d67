package bench

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// near draws numbers close to a power of 2, to 0 and to 2^64-1 more often than others.
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

func TestWindowZero(t *testing.T) {
	var w window
	for i, want := range []verdict{fresh, duplicate} {
		if got := w.mark(0); got != want {
			t.Fatalf("mark %d of 0: %d", i, got)
		}
	}
	w = window{}
	for _, c := range []struct {
		n    uint64
		want verdict
	}{{1000, fresh}, {0, overtaken}, {937, fresh}, {936, overtaken}, {937, duplicate}, {math.MaxUint64, fresh}, {1000, overtaken}} {
		if got := w.mark(c.n); got != c.want {
			t.Fatalf("mark(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

func TestWindowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		marked := map[uint64]bool{}
		newest := uint64(0)
		at := near.Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "marks") {
			n := at + uint64(rapid.Int64Range(-70, 70).Draw(t, "step"))
			want := fresh
			switch {
			case len(marked) > 0 && newest > n && newest-n >= span:
				want = overtaken
			case marked[n]:
				want = duplicate
			}
			if got := w.mark(n); got != want {
				t.Fatalf("mark(%d) = %d, want %d", n, got, want)
			}
			if want == fresh {
				marked[n] = true
				newest = max(newest, n)
				at = n
			}
		}
	})
}
