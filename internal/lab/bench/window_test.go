package bench

import (
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

// TestWindow checks a window against a set of all marked numbers.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		marked := map[uint64]bool{}
		newest := uint64(0)
		at := near.Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "marks") {
			n := at + uint64(rapid.Int64Range(-70, 70).Draw(t, "step"))
			want := !marked[n] && (n > newest || newest-n < span)
			if got := w.mark(n); got != want {
				t.Fatalf("mark(%d) = %v, want %v", n, got, want)
			}
			if want {
				marked[n] = true
				newest = max(newest, n)
				at = n
			}
		}
	})
}
