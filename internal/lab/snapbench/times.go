package snapbench

import (
	"slices"
	"time"
)

type times []time.Duration

func (t *times) add(d time.Duration) { *t = append(*t, d) }

// median is in microseconds.
func (t times) median() float64 {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return float64(t[len(t)/2]) / 1e3
}

func (c Clock) now() time.Duration {
	if c == nil {
		return 0
	}
	return c()
}
