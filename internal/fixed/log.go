package fixed

import "math/bits"

// LogOne is 1 in the fixed point of logarithms.
const LogOne = 256

// Log2 is the logarithm of |v| + 3/4 in steps of 1/LogOne, straight between powers of two. v is in Q4.
func Log2(v int64) int64 {
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
	return int64(n-4)*LogOne + int64(m&255)
}
