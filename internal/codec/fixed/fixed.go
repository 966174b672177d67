// Package fixed computes with integers and fractions of so many bits, alike on every platform.
package fixed

// Abs is how large v is.
func Abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// Clamp is v, or the bound that it is beyond.
func Clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }
