// Package fixed computes with integers and fixed-point fractions. Results are the same on every
// platform.
package fixed

import (
	"math"
	"math/bits"
)

// Abs returns |v|.
func Abs(v int64) int64 { return max(v, -v) }

// Clamp returns v, limited to lo and hi.
func Clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }

// Mod returns v modulo n, 0 or above.
func Mod(v, n int64) int64 {
	if v %= n; v < 0 {
		v += n
	}
	return v
}

// Wrap returns a difference of angles, wrapped to half a turn in either direction.
func Wrap(d, turn int64) int64 { return Mod(d+turn/2, turn) - turn/2 }

// LogOne is 1 in the fixed point of logarithms, Q8.
const LogOne = 256

// Log2 returns log2(|v| + 3/4) in Q8, interpolated linearly between powers of two. v is in Q4.
func Log2(v int64) int64 {
	x := uint64(Abs(v)) + 12
	n := bits.Len64(x)
	return int64(n-5)*LogOne + int64(x<<(64-n&63)>>55&255)
}

// Sqrt returns the square root of v, rounded down. v is below 2^52. Every platform rounds square
// roots of float64 alike; the function corrects an error of one.
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
