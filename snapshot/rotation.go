package snapshot

// Quaternions and rotation vectors are in Q16.
const (
	rotShift = 16
	rotOne   = 1 << rotShift
	invRoot2 = 46341 // 1 / sqrt 2
)

type quat [4]int64

// grain is how a Quat field's components stand for elements, so that none of it is divided for again.
type grain struct {
	zero int64 // twice the component that stands for 0
	step int64 // an element's half step, by 2^grainShift
	per  int64 // components in Q4 to an element of 1, by 2^grainShift
	unit int64 // of rotation, Q16, to one of a component, and more
	log  int64 // of unit in Q4, logarithm
}

const grainShift = 24

func (f *Field) grain() grain {
	span := int64(f.Hi) - int64(f.Lo)
	unit := 2*invRoot2/span + 1
	return grain{
		zero: int64(f.Lo) + int64(f.Hi),
		step: invRoot2 << grainShift / span,
		per:  span * 8 << grainShift / invRoot2,
		unit: unit,
		log:  log2(unit * 16),
	}
}

// unpack gives the quaternion of the field's row.
func (g *grain) unpack(row []int32) quat {
	row = row[:4]
	x, y, z := g.element(row[1]), g.element(row[2]), g.element(row[3])
	w := int64(isqrt(uint64(max(0, rotOne*rotOne-x*x-y*y-z*z))))
	switch row[0] & 3 {
	case 0:
		return quat{w, x, y, z}
	case 1:
		return quat{x, w, y, z}
	case 2:
		return quat{x, y, w, z}
	default:
		return quat{x, y, z, w}
	}
}

func (g *grain) element(v int32) int64 {
	return ((2*int64(v)-g.zero)*g.step + 1<<(grainShift-1)) >> grainShift
}

// size is the logarithm of a sum of angles, in components.
func (g *grain) size(angle int64) int64 { return max(log2(angle*16)-g.log, 0) }

// pack is element v as a component of the field, in Q4 and not bounded.
func (g *grain) pack(v int64) int64 { return (v*g.per+1<<(grainShift-1))>>grainShift + g.zero*8 }

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
