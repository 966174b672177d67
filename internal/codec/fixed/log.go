package fixed

import "math/bits"

// LogOne is 1 in the fixed point of logarithms.
const LogOne = 256

// Log2 is the logarithm of |v| + 3/4 in steps of 1/LogOne, straight between powers of two. v is in
// Q4.
func Log2(v int64) int64 {
	if v < 0 {
		v = -v
	}
	x := uint64(v) + 12
	n := bits.Len64(x)
	return int64(n-5)*LogOne + int64(x<<(64-n&63)>>55&255)
}
