package quat

import "math"

// Float is a unit quaternion x, y, z, w.
type Float [4]float64

// UnpackFloat returns the quaternion whose largest element has index big. The other elements are
// smallest, where limit stands for 1/sqrt 2.
func UnpackFloat(big int, smallest [3]float64, limit float64) (q Float) {
	left := 1.0
	for i, j := range rest(big) {
		v := smallest[i] / limit / math.Sqrt2
		q[j] = v
		left -= v * v
	}
	q[big] = math.Sqrt(max(left, 0))
	return q
}

func rest(big int) [3]int {
	r := [3]int{}
	for i := range r {
		r[i] = i
		if i >= big {
			r[i]++
		}
	}
	return r
}

// Pack is the inverse of [UnpackFloat]: it returns the elements of q other than big, scaled by
// limit and not rounded.
func (q Float) Pack(big int, limit float64) (smallest [3]float64) {
	s := limit * math.Sqrt2
	if q[big] < 0 {
		s = -s
	}
	for i, j := range rest(big) {
		smallest[i] = q[j] * s
	}
	return smallest
}

// Mul returns the rotation by b followed by q.
func (q Float) Mul(b Float) Float {
	return Float{
		q[3]*b[0] + q[0]*b[3] + q[1]*b[2] - q[2]*b[1],
		q[3]*b[1] - q[0]*b[2] + q[1]*b[3] + q[2]*b[0],
		q[3]*b[2] + q[0]*b[1] - q[1]*b[0] + q[2]*b[3],
		q[3]*b[3] - q[0]*b[0] - q[1]*b[1] - q[2]*b[2],
	}
}

// ExpFloat returns the rotation by v in radians.
func ExpFloat(v [3]float64) Float {
	a := math.Sqrt(v[0]*v[0]+v[1]*v[1]+v[2]*v[2]) / 2
	k := .5
	if a > 1e-9 {
		k = math.Sin(a) / a / 2
	}
	return Float{v[0] * k, v[1] * k, v[2] * k, math.Cos(a)}
}

// BetweenFloat returns the rotation from a to b in radians.
func BetweenFloat(a, b Float) (v [3]float64) {
	r := b.Mul(Float{-a[0], -a[1], -a[2], a[3]})
	if r[3] < 0 {
		r = Float{-r[0], -r[1], -r[2], -r[3]}
	}
	s := math.Sqrt(r[0]*r[0] + r[1]*r[1] + r[2]*r[2])
	k := 2.0
	if s > 1e-9 {
		k = 2 * math.Atan2(s, r[3]) / s
	}
	for i := range v {
		v[i] = r[i] * k
	}
	return v
}
