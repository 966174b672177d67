package fixed

import "math"

// Sqrt is the root of v, rounded down; v is below 2^52. Roots of float64 are rounded in the same
// way everywhere, and a wrong one would be corrected.
func Sqrt(v uint64) uint64 {
	x := uint64(math.Sqrt(float64(v)))
	for x*x > v {
		x--
	}
	for (x+1)*(x+1) <= v {
		x++
	}
	return x
}
