package rpcdelta

import "math"

// Directions are folded onto an octahedron and this onto a square, so two
// components hold them with an error that is nearly the same everywhere, and
// the six axes are exact. Source: Cigolle et al., "A Survey of Efficient
// Representations for Independent Unit Vectors", 2014.

// quantizeUnitVec writes the two octahedral components in limit steps either
// way. It says false for a vector without a direction.
func quantizeUnitVec(dst []int32, v []float64, limit int32) bool {
	sum := math.Abs(v[0]) + math.Abs(v[1]) + math.Abs(v[2])
	if !(sum > 1e-100 && sum < 1e100) {
		return false
	}
	x, y := v[0]/sum, v[1]/sum
	if v[2] < 0 {
		x, y = fold(x, y)
	}
	dst[0] = min(max(int32(round(x, float64(limit))), -limit), limit)
	dst[1] = min(max(int32(round(y, float64(limit))), -limit), limit)
	return true
}

// appendUnitVec appends x, y, z of length 1, for any components in range.
func appendUnitVec(dst []float64, src []int32, limit int32) []float64 {
	x, y := float64(src[0])/float64(limit), float64(src[1])/float64(limit)
	z := 1 - math.Abs(x) - math.Abs(y)
	if z < 0 {
		x, y = fold(x, y)
	}
	v := [3]float64{x, y, z}
	return append(dst, normalized(v[:])...)
}

// fold swaps the square's middle, the upper half, with its corners, the lower.
func fold(x, y float64) (fx, fy float64) {
	return math.Copysign(1-math.Abs(y), x), math.Copysign(1-math.Abs(x), y)
}
