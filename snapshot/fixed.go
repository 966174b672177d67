package snapshot

import (
	"math"
	"math/bits"
)

// logOne is 1 in the fixed point of logarithms.
const logOne = 256

// log2 is the logarithm of v + 3/4 in steps of 1/logOne, straight between powers of two. v is in Q4.
func log2(v int64) int64 {
	if v < 0 {
		v = -v
	}
	x := uint64(v) + 12
	n := bits.Len64(x) - 1
	var m uint64
	if n >= 8 {
		m = x >> (n - 8)
	} else {
		m = x << (8 - n)
	}
	return int64(n-4)*logOne + int64(m&255)
}

// bias is 1 among logarithms that a scale is predicted from: about as large as they are.
const bias = 8 * logOne

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }

// isqrt is the root of v, rounded down; v is below 2^52. Roots of float64 are rounded in the same way everywhere, and
// a wrong one would be corrected.
func isqrt(v uint64) uint64 {
	x := uint64(math.Sqrt(float64(v)))
	for x*x > v {
		x--
	}
	for (x+1)*(x+1) <= v {
		x++
	}
	return x
}
