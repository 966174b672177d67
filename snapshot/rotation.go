package snapshot

// Quaternions and rotation vectors are in Q16.
const (
	rotShift = 16
	rotOne   = 1 << rotShift
	invRoot2 = 46341 // 1 / sqrt 2
)

type quat [4]int64

// unpack gives the quaternion of a Quat field's row.
func (f *Field) unpack(row []int32) (q quat) {
	span, sum := int64(f.Hi)-int64(f.Lo), int64(0)
	k := 1
	for i := range q {
		if i == int(row[0]&3) {
			continue
		}
		v := (2*int64(row[k]) - int64(f.Lo) - int64(f.Hi)) * invRoot2 / span
		q[i] = v
		sum += v * v
		k++
	}
	q[row[0]&3] = int64(isqrt(uint64(max(0, rotOne*rotOne-sum))))
	return q
}

// pack is element v as the component of a Quat field, in Q4 and not bounded.
func (f *Field) pack(v int64) int64 {
	span := int64(f.Hi) - int64(f.Lo)
	return (v*span*16/invRoot2 + (int64(f.Lo)+int64(f.Hi))*16) / 2
}

// mul is the rotation by b and then by q.
func (q *quat) mul(b *quat) quat {
	return quat{
		(q[3]*b[0] + q[0]*b[3] + q[1]*b[2] - q[2]*b[1]) >> rotShift,
		(q[3]*b[1] - q[0]*b[2] + q[1]*b[3] + q[2]*b[0]) >> rotShift,
		(q[3]*b[2] + q[0]*b[1] - q[1]*b[0] + q[2]*b[3]) >> rotShift,
		(q[3]*b[3] - q[0]*b[0] - q[1]*b[1] - q[2]*b[2]) >> rotShift,
	}
}

// between is the rotation that takes a to b, in radians: the series of the arc sine.
func between(a, b *quat) (v [3]int64) {
	inv := quat{-a[0], -a[1], -a[2], a[3]}
	r := b.mul(&inv)
	if r[3] < 0 {
		r = quat{-r[0], -r[1], -r[2], -r[3]}
	}
	s := (r[0]*r[0] + r[1]*r[1] + r[2]*r[2]) >> rotShift
	k := 2*rotOne + (s*(21845+(s*(9830+s*5851>>rotShift)>>rotShift)))>>rotShift
	for i := range v {
		v[i] = r[i] * k >> rotShift
	}
	return v
}

// turn is the rotation by v in radians, at most about a half turn: the series of sine and cosine.
func turn(v [3]int64) quat {
	const most = 3 * rotOne
	for i := range v {
		v[i] = clamp(v[i], -most, most)
	}
	x := (v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) >> (rotShift + 2) // the square of half the angle
	x = min(x, 3*rotOne)
	sin := rotOne - x*(rotOne-x*(rotOne-x*(rotOne-x/72)>>rotShift/42)>>rotShift/20)>>rotShift/6
	cos := rotOne - x*(rotOne-x*(rotOne-x*(rotOne-x/56)>>rotShift/30)>>rotShift/12)>>rotShift/2
	return quat{v[0] * sin >> (rotShift + 1), v[1] * sin >> (rotShift + 1), v[2] * sin >> (rotShift + 1), cos}
}
