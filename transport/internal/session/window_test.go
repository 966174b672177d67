package session

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWindowAgainstModel compares the window with a set of all the numbers that ever came.
func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint16().Draw(t, "start")
		w := newWindow(start)
		first := int64(start)
		newest := first - 1
		came := make(map[int64]bool)
		for range rapid.IntRange(1, 300).Draw(t, "datagrams") {
			n := newest + rapid.OneOf(
				rapid.Int64Range(-80, 80), rapid.Just(int64(1)), rapid.Int64Range(maxAhead-2, maxAhead+2),
			).Draw(t, "step")
			want := Accepted
			switch {
			case n > newest+maxAhead:
				want = Stray
			case n <= newest-windowSize:
				want = Late
			case came[n] || n < first: // what was before the start counts as seen
				want = Duplicate
			}
			number, got := w.check(uint16(n))
			if got != want {
				t.Fatalf("number %d after %d: verdict %d, want %d", n, newest, got, want)
			}
			if got == Accepted {
				w.mark(number)
				came[n] = true
				newest = max(newest, n)
			}
		}
		var lost uint64
		for n := first; n <= newest-windowSize; n++ {
			if !came[n] {
				lost++
			}
		}
		if w.lost != lost {
			t.Errorf("%d lost, want %d", w.lost, lost)
		}
	})
}
