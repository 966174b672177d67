package statesync

import "math/bits"

// logOne is 1 in the fixed point of logarithms.
const logOne = 256

// log2 is the logarithm of |v| + 3/4 in steps of 1/logOne, straight between powers of two. v is in Q4.
func log2(v int64) int64 {
	x := uint64(abs(v)) + 12
	n := bits.Len64(x) - 1
	m := x << 8 >> min(n, 55)
	if n > 55 {
		m = x >> (n - 8)
	}
	return int64(n-4)*logOne + int64(m&255)
}

func abs(v int64) int64 { return max(v, -v) }

func clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }

// sign3 tells zero, positive and negative apart.
func sign3(v int64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}

// roots are those of v + 1/2, for v from 64 to 255, in Q4.
var roots = func() (t [192]uint64) {
	for i := range t {
		x := uint64(128)
		for (x+1)*(x+1) <= uint64(2*(i+64)+1)<<7 {
			x++
		}
		t[i] = x
	}
	return t
}()

// isqrt is the root of v, rounded down: that of its eight leading bits, made better twice.
func isqrt(v uint64) uint64 {
	if v == 0 {
		return 0
	}
	n := uint(bits.LeadingZeros64(v)) &^ 1
	m := v << n
	x := roots[m>>56-64]
	x = x<<7 + (m>>41)/x
	x = x<<15 + (m>>17)/x
	for x > 1<<32-1 || x*x > m {
		x--
	}
	for x < 1<<32-1 && (x+1)*(x+1) <= m {
		x++
	}
	return x >> (n / 2)
}
