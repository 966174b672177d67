package interpolate

import (
	"slices"
	"time"
)

// windowLength is how long a window remembers, windowSize how many values.
const (
	windowLength = 30 * time.Second
	windowSize   = 1024
)

// window is the values of the last while, in order of age and of size.
type window struct {
	recent [windowSize]timed // a ring
	first  int
	sorted []time.Duration // has room for windowSize
}

type timed struct{ at, value time.Duration }

// add takes a value at a time not before that of the last one, and forgets what is too old.
func (w *window) add(at, value time.Duration) {
	for len(w.sorted) == windowSize || len(w.sorted) > 0 && at-w.recent[w.first].at > windowLength {
		i, _ := slices.BinarySearch(w.sorted, w.recent[w.first].value)
		w.sorted = slices.Delete(w.sorted, i, i+1)
		w.first = (w.first + 1) % windowSize
	}
	w.recent[(w.first+len(w.sorted))%windowSize] = timed{at, value}
	i, _ := slices.BinarySearch(w.sorted, value)
	w.sorted = slices.Insert(w.sorted, i, value)
}

// above is the least of the values that at most the given share of them exceeds. There is one at least.
func (w *window) above(share float64) time.Duration {
	return w.sorted[len(w.sorted)-1-int(share*float64(len(w.sorted)))]
}

func (w *window) reset() { w.sorted = w.sorted[:0] }
