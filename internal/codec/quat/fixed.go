package quat

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

// Quaternions and rotation vectors are in Q16.
const (
	Shift    = 16
	One      = 1 << Shift
	invRoot2 = 46341 // 1 / sqrt 2
)

// Fixed is a unit quaternion x, y, z, w in Q16.
type Fixed [4]int64

// Mul returns the rotation by b followed by q.
func (q *Fixed) Mul(b *Fixed) Fixed {
	return Fixed{
		(q[3]*b[0] + q[0]*b[3] + q[1]*b[2] - q[2]*b[1]) >> Shift,
		(q[3]*b[1] - q[0]*b[2] + q[1]*b[3] + q[2]*b[0]) >> Shift,
		(q[3]*b[2] + q[0]*b[1] - q[1]*b[0] + q[2]*b[3]) >> Shift,
		(q[3]*b[3] - q[0]*b[0] - q[1]*b[1] - q[2]*b[2]) >> Shift,
	}
}

// Between returns the rotation vector from a to b, in radians, by the series of the arc sine.
func Between(a, b *Fixed) (v [3]int64) {
	inv := Fixed{-a[0], -a[1], -a[2], a[3]}
	r := b.Mul(&inv)
	if r[3] < 0 {
		r = Fixed{-r[0], -r[1], -r[2], -r[3]}
	}
	s := (r[0]*r[0] + r[1]*r[1] + r[2]*r[2]) >> Shift
	k := 2*One + (s*(21845+(s*(9830+s*5851>>Shift)>>Shift)))>>Shift
	for i := range v {
		v[i] = r[i] * k >> Shift
	}
	return v
}

// ExpAny is like Exp for any angle: it computes a small part of the rotation and doubles it.
func ExpAny(v [3]int64) Fixed {
	double := 0
	for max(fixed.Abs(v[0]), fixed.Abs(v[1]), fixed.Abs(v[2]))>>double > One {
		double++
	}
	for i := range v {
		v[i] >>= double
	}
	q := Exp(v)
	for range double {
		q = q.Mul(&q)
	}
	return q
}

// Exp returns the rotation by the vector v in radians, at most about half a turn, by the series of
// sine and cosine.
func Exp(v [3]int64) Fixed {
	const most = 3 * One
	for i := range v {
		v[i] = fixed.Clamp(v[i], -most, most)
	}
	x := (v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) >> (Shift + 2) // the square of half the angle
	x = min(x, 3*One)
	sin := One - x*(One-x*(One-x*(One-x/72)>>Shift/42)>>Shift/20)>>Shift/6
	cos := One - x*(One-x*(One-x*(One-x/56)>>Shift/30)>>Shift/12)>>Shift/2
	return Fixed{v[0] * sin >> (Shift + 1), v[1] * sin >> (Shift + 1), v[2] * sin >> (Shift + 1), cos}
}
