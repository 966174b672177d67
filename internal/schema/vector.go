package schema

import "math"

// Vec2 is a point or vector in the plane. A field of this type needs the option resolution.
type Vec2 struct{ X, Y float64 }

// Vec3 is a point or vector in space. A field of this type needs the option resolution.
type Vec3 struct{ X, Y, Z float64 }

// UnitVec is a direction. Quantization normalizes it; a restored direction has length 1. The option
// bits sets the size of each of its two components (default 12).
type UnitVec struct{ X, Y, Z float64 }

// Quat is a rotation as a quaternion. Quantization normalizes it; a restored quaternion has length
// 1, and its largest component is positive. The option bits sets the size of each of its smallest
// three components (default 12).
type Quat struct{ X, Y, Z, W float64 }

// Rotator is a rotation as three angles in degrees. A restored angle is at least -180 and less than
// 180. The option bits sets the number of steps of a turn, 2^bits (default 16).
type Rotator struct{ Pitch, Yaw, Roll float64 }

// Angle is an angle in degrees. A restored angle is at least -180 and less than 180. The option
// bits sets the number of steps of a turn, 2^bits (default 16).
type Angle float64

// quantizeQuat writes the smallest-three encoding of q to dst: the index of the largest of x, y, z
// and w, and the other three, where -limit to limit steps stand for -1/sqrt 2 to 1/sqrt 2. It
// normalizes q and negates it if the largest component is negative, since q and -q are the same
// rotation. Steps are symmetric about zero, so the identity is exact and the rounding has no bias.
// It reports false if q has no direction.
func quantizeQuat(dst []int32, q []float64, limit int32) bool {
	largest, norm := 0, 0.0
	for i, v := range q {
		norm += float64(v * v)
		if math.Abs(v) > math.Abs(q[largest]) {
			largest = i
		}
	}
	length := math.Sqrt(norm)
	if !(length > 1e-100 && length < 1e100) {
		return false
	}
	scale := math.Sqrt2 * float64(limit) / math.Copysign(length, q[largest])
	dst[0] = int32(largest)
	k := 1
	for i, v := range q {
		if i != largest {
			dst[k] = min(max(int32(round(v, scale)), -limit), limit)
			k++
		}
	}
	return true
}

// appendQuat appends x, y, z and w of the encoded quaternion, normalized. src may hold any
// components in range.
func appendQuat(dst []float64, src []int32, limit int32) []float64 {
	scale := math.Sqrt2 * float64(limit)
	largest := int(src[0])
	rest, k := 1.0, 1
	var q [4]float64
	for i := range q {
		if i != largest {
			q[i] = float64(src[k]) / scale
			rest -= float64(q[i] * q[i])
			k++
		}
	}
	q[largest] = math.Sqrt(max(rest, 0))
	return append(dst, normalized(q[:])...)
}

// quantizeUnitVec writes the octahedral encoding of v to dst, with limit steps for 1. It projects
// the direction onto an octahedron and unfolds that onto a square, so two components suffice, the
// error is nearly uniform and the six axes are exact. It reports false if v has no direction.
// Source: Cigolle et al., "A Survey of Efficient Representations for Independent Unit Vectors",
// 2014.
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

// appendUnitVec appends x, y and z of the encoded direction, normalized. src may hold any
// components in range.
func appendUnitVec(dst []float64, src []int32, limit int32) []float64 {
	x, y := float64(src[0])/float64(limit), float64(src[1])/float64(limit)
	z := 1 - math.Abs(x) - math.Abs(y)
	if z < 0 {
		x, y = fold(x, y)
	}
	v := [3]float64{x, y, z}
	return append(dst, normalized(v[:])...)
}

// fold exchanges the inner part of the square, the upper half of the octahedron, with its corners,
// the lower half.
func fold(x, y float64) (fx, fy float64) {
	return math.Copysign(1-math.Abs(y), x), math.Copysign(1-math.Abs(x), y)
}

// normalized scales v in place to length 1. The length must be neither infinite nor close to 0.
func normalized(v []float64) []float64 {
	norm := 0.0
	for _, x := range v {
		norm += float64(x * x)
	}
	if norm != 1 {
		length := math.Sqrt(norm)
		for i := range v {
			v[i] /= length
		}
	}
	return v
}
