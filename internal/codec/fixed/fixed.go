// Package fixed computes with integers and fixed-point fractions: the same results on every
// platform.
package fixed

// Abs returns |v|.
func Abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// Clamp returns v, limited to lo and hi.
func Clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }
