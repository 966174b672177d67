package statesync

import "math/bits"

// Quaternions and rotation vectors are in Q30.
const (
	shift    = 30
	one      = 1 << shift
	invRoot2 = 759250125 // 1 / sqrt 2
	// unitBits are of the fraction of field.unit.
	unitBits = 20
)

type quat [4]int64

// unpack gives the quaternion of a Quat field's row.
func (f *field) unpack(row []int32) (q quat) {
	sum, middle := int64(0), int64(f.Lo)+int64(f.Hi)
	k := 1
	for i := range q {
		if i == int(row[0]&3) {
			continue
		}
		v := (2*int64(row[k]) - middle) * f.unit >> unitBits
		q[i] = v
		sum += v * v
		k++
	}
	q[row[0]&3] = int64(isqrt(uint64(max(0, one*one-sum))))
	return q
}

// pack is element v as the component of a Quat field, in Q4 and not bounded.
func (f *field) pack(v int64) int64 {
	span := int64(f.Hi) - int64(f.Lo)
	return (v*span*16/invRoot2 + (int64(f.Lo)+int64(f.Hi))*16) / 2
}

// mul is the rotation by b and then by q.
func (q *quat) mul(b *quat) quat {
	return quat{
		(q[3]*b[0] + q[0]*b[3] + q[1]*b[2] - q[2]*b[1]) >> shift,
		(q[3]*b[1] - q[0]*b[2] + q[1]*b[3] + q[2]*b[0]) >> shift,
		(q[3]*b[2] + q[0]*b[1] - q[1]*b[0] + q[2]*b[3]) >> shift,
		(q[3]*b[3] - q[0]*b[0] - q[1]*b[1] - q[2]*b[2]) >> shift,
	}
}

// between is the rotation that takes a to b, in radians: the series of the arc sine.
func between(a, b *quat) (v [3]int64) {
	inv := quat{-a[0], -a[1], -a[2], a[3]}
	r := b.mul(&inv)
	if r[3] < 0 {
		r = quat{-r[0], -r[1], -r[2], -r[3]}
	}
	s := (r[0]*r[0] + r[1]*r[1] + r[2]*r[2]) >> shift
	k := 2*one + s*(one/3+s*(one*3/20+s*(one*5/56)>>shift)>>shift)>>shift
	for i := range v {
		v[i] = r[i] * k >> shift
	}
	return v
}

// turn is the rotation by v in radians, any number of turns: the series of sine and cosine for a small part of it,
// doubled.
func turn(v [3]int64) quat {
	const small = 1 << (shift - 1)
	double := max(0, bits.Len64(uint64(max(abs(v[0]), abs(v[1]), abs(v[2]))))-bits.Len64(small-1))
	for i := range v {
		v[i] >>= double
	}
	x := (v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) >> (shift + 2) // the square of half the angle
	sin := one - x*(one-x*(one-x/42)>>shift/20)>>shift/6
	cos := one - x*(one-x*(one-x/30)>>shift/12)>>shift/2
	q := quat{v[0] * sin >> (shift + 1), v[1] * sin >> (shift + 1), v[2] * sin >> (shift + 1), cos}
	for range double {
		q = q.mul(&q)
	}
	return q
}
