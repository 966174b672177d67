package fixed

import "math"

// Sqrt returns the square root of v, rounded down. v is below 2^52. Square roots of float64 are
// rounded alike on every platform, and an error of one would be corrected.
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
