package quat

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// Quaternions and rotation vectors are in Q16.
const (
	Shift    = 16
	One      = 1 << Shift
	invRoot2 = 46341 // 1 / sqrt 2
)

// Fixed is a unit quaternion x, y, z, w in Q16. Methods write their result to the receiver, as
// those of math/big do. Returning an array would be slow: a copy reads in other units than the
// writes before it, which stalls the processor.
type Fixed [4]int64

// Mul sets q to the rotation by b and then by a.
func (q *Fixed) Mul(a, b *Fixed) {
	// Local variables, because the compiler keeps them in registers, but not arrays.
	ax, ay, az, aw := a[0], a[1], a[2], a[3]
	bx, by, bz, bw := b[0], b[1], b[2], b[3]
	q[0] = (aw*bx + ax*bw + ay*bz - az*by) >> Shift
	q[1] = (aw*by - ax*bz + ay*bw + az*bx) >> Shift
	q[2] = (aw*bz + ax*by - ay*bx + az*bw) >> Shift
	q[3] = (aw*bw - ax*bx - ay*by - az*bz) >> Shift
}

// Between returns the rotation from a to b in radians, by a series of the arc sine.
func Between(a, b *Fixed) (x, y, z int64) {
	ax, ay, az, aw := -a[0], -a[1], -a[2], a[3]
	bx, by, bz, bw := b[0], b[1], b[2], b[3]
	x = (bw*ax + bx*aw + by*az - bz*ay) >> Shift
	y = (bw*ay - bx*az + by*aw + bz*ax) >> Shift
	z = (bw*az + bx*ay - by*ax + bz*aw) >> Shift
	if (bw*aw-bx*ax-by*ay-bz*az)>>Shift < 0 {
		x, y, z = -x, -y, -z
	}
	s := (x*x + y*y + z*z) >> Shift
	k := 2*One + (s*(21845+(s*(9830+s*5851>>Shift)>>Shift)))>>Shift
	return x * k >> Shift, y * k >> Shift, z * k >> Shift
}

// ExpAny is Exp for angles of any size. It computes a small fraction of v and then doubles the
// rotation.
func (q *Fixed) ExpAny(v [3]int64) {
	double := 0
	for max(fixed.Abs(v[0]), fixed.Abs(v[1]), fixed.Abs(v[2]))>>double > One {
		double++
	}
	for i := range v {
		v[i] >>= double
	}
	q.Exp(v[0], v[1], v[2])
	for range double {
		q.Mul(q, q)
	}
}

// Exp sets q to the rotation by a vector in radians, at most about half a turn, by series of sine
// and cosine.
func (q *Fixed) Exp(vx, vy, vz int64) {
	const most = 3 * One
	vx, vy, vz = fixed.Clamp(vx, -most, most), fixed.Clamp(vy, -most, most), fixed.Clamp(vz, -most, most)
	x := (vx*vx + vy*vy + vz*vz) >> (Shift + 2) // square of half the angle
	x = min(x, 3*One)
	sin := One - x*(One-x*(One-x*(One-x/72)>>Shift/42)>>Shift/20)>>Shift/6
	cos := One - x*(One-x*(One-x*(One-x/56)>>Shift/30)>>Shift/12)>>Shift/2
	q[0], q[1], q[2], q[3] = vx*sin>>(Shift+1), vy*sin>>(Shift+1), vz*sin>>(Shift+1), cos
}

// Largest returns the indices of the two largest elements, and log2 of their difference in
// component steps of g.
func (q *Fixed) Largest(g *Quantizer) (first, second int, margin int64) {
	most, next := fixed.Abs(q[0]), int64(-1)
	for i := 1; i < len(q); i++ {
		switch v := fixed.Abs(q[i]); {
		case v > most:
			first, second, most, next = i, first, v, most
		case v > next:
			second, next = i, v
		}
	}
	return first, second, g.Size(most - next)
}

// Others returns the two of the indices 0 to 3 that are neither a nor b, the lower first.
func Others(a, b int) (low, high int) {
	left := 0b1111 &^ (1 << a) &^ (1 << b)
	return bits.TrailingZeros(uint(left)), bits.Len(uint(left)) - 1
}
