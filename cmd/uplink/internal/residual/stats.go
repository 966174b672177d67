package residual

import (
	"cmp"
	"math"
	"slices"
)

// Stats describes residuals, in steps.
type Stats struct {
	// Mean is the mean magnitude; P50, P90 and P99 are magnitudes that so many percent are not above.
	Mean float64 `json:"mean_abs"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	// Zeros is the share of residuals that are 0.
	Zeros float64 `json:"zeros"`
	// Entropy is that of the values as they occurred, in bits: what a code takes that knows how frequent each is, but
	// nothing of their order. Of few residuals it says too little: most values are then seen once.
	Entropy float64 `json:"entropy_bits"`
}

// Describe gives the stats of whole numbers e, which it sorts by magnitude.
func Describe(e []float64) (s Stats) {
	if len(e) == 0 {
		return s
	}
	slices.SortFunc(e, func(a, b float64) int {
		return cmp.Or(cmp.Compare(math.Abs(a), math.Abs(b)), cmp.Compare(a, b))
	})
	n := float64(len(e))
	run := 0
	for i, v := range e {
		s.Mean += math.Abs(v) / n
		if v == 0 {
			s.Zeros += 1 / n
		}
		run++
		if i+1 == len(e) || e[i+1] != v {
			s.Entropy -= float64(run) / n * math.Log2(float64(run)/n)
			run = 0
		}
	}
	at := func(share float64) float64 { return math.Abs(e[int(math.Ceil(share*n))-1]) }
	s.P50, s.P90, s.P99 = at(.5), at(.9), at(.99)
	return s
}
