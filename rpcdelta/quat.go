package rpcdelta

import "math"

// quantizeQuat writes the index of the largest of x, y, z, w and the other
// three, times sqrt 2, in limit steps either way, after normalizing and after
// turning the sign so that the largest is positive (q and -q are one rotation).
// Steps lie symmetrically about zero, so the identity is exact and nothing
// leans to one side. It says false for a quaternion without a direction.
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

// appendQuat appends x, y, z, w of length 1, for any components in range.
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

// normalized scales v, which has no infinite or tiny length, to length 1.
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
