package adaptive

import (
	"math/bits"
)

// orientation predicts a quaternion. Its predictions are rotations; they become features once the
// index of the largest element is known.
type orientation struct {
	base     quat          // the reference
	pred     [2]quat       // one prediction per feature
	ref      [3]int64      // the reference under the true index
	features [3]featureSet // by component
	index    int           // predicted index of the largest element
	// ambiguity is 0 to 9. It grows as the two largest elements of the prediction approach each
	// other.
	ambiguity int
}

const ambiguityLevels = 10

// predict computes the predictions of the features in the bit mask want, and the first one in any
// case.
func (q *orientation) predict(p *refFrames, ints []int32, g *group, want uint) {
	q.base = unpackQuat(p.ref[g.at:g.at+4], g.unpackScale)
	if g.family == familyTurned {
		var v rotationVector
		k := p.dist * g.velocityFactor
		for i := range v {
			v[i] = (int64(ints[g.velocity+i]) + int64(p.ref[g.velocity+i])) * k >> 8
		}
		v.clamp()
		q.pred[0] = exp(&v).mul(q.base)
	} else {
		q.pred[0] = q.extrapolate(p.h1, g, p.r1)
		if want&2 != 0 {
			q.pred[1] = q.extrapolate(p.hd, g, p.rd)
		}
	}
	q.predictIndex()
}

// extrapolate continues the rotation since frame h at a rate in Q16.
func (q *orientation) extrapolate(h []int32, g *group, rate int64) quat {
	if rate == 0 {
		return q.base
	}
	return q.base.extrapolate(unpackQuat(h[g.at:g.at+4], g.unpackScale), rate)
}

// absolutes returns the absolute values of the first prediction's elements.
func (q *orientation) absolutes() [4]int64 {
	t := &q.pred[0]
	return [4]int64{max(t.x, -t.x), max(t.y, -t.y), max(t.z, -t.z), max(t.w, -t.w)}
}

// predictIndex sets the predicted index and its ambiguity.
func (q *orientation) predictIndex() {
	first, second := int64(-1), int64(-1)
	for i, v := range q.absolutes() {
		if v > first {
			second, first, q.index = first, v, i
		} else if v > second {
			second = v
		}
	}
	q.ambiguity = max(0, min(ambiguityLevels-1, 30-bits.Len64(uint64(first-second))))
}

// otherIndexes returns the indexes other than the predicted one, the most likely first.
func (q *orientation) otherIndexes() (o [3]int) {
	m := q.absolutes()
	n := 0
	for i := range m {
		if i == q.index {
			continue
		}
		j := n
		for ; j > 0 && m[o[j-1]] < m[i]; j-- {
			o[j] = o[j-1]
		}
		o[j] = i
		n++
	}
	return o
}

// toComponents expresses the reference and the predictions in want as the smallest three under
// index idx.
func (q *orientation) toComponents(g *group, idx int, want uint) {
	t := q.base.smallestThree(idx, g.packScale)
	ref := vec3{(t.x + 8) >> 4, (t.y + 8) >> 4, (t.z + 8) >> 4}
	q.ref = [3]int64{ref.x, ref.y, ref.z}
	for j := range q.pred {
		if want>>j&1 == 0 {
			continue
		}
		t := q.pred[j].smallestThree(idx, g.packScale)
		q.features[0][j] = t.x - ref.x<<4
		q.features[1][j] = t.y - ref.y<<4
		q.features[2][j] = t.z - ref.z<<4
	}
}

// one30 is 1 in Q30.
const one30 = 1 << 30

// quat is an orientation in Q30. The compiler keeps structs in registers, but not arrays.
type quat struct{ x, y, z, w int64 }

// rotationVector is an axis times half the angle, in radians, Q30.
type rotationVector [3]int64

// clamp limits each axis to 8.
func (v *rotationVector) clamp() {
	for i := range v {
		v[i] = max(-8*one30, min(8*one30, v[i]))
	}
}

// mul returns the product ab: the rotation b, then a.
func (a quat) mul(b quat) quat {
	return quat{
		x: (a.w*b.x + a.x*b.w + a.y*b.z - a.z*b.y) >> 30,
		y: (a.w*b.y - a.x*b.z + a.y*b.w + a.z*b.x) >> 30,
		z: (a.w*b.z + a.x*b.y - a.y*b.x + a.z*b.w) >> 30,
		w: (a.w*b.w - a.x*b.x - a.y*b.y - a.z*b.z) >> 30,
	}
}

// sqrt30 returns the square root in Q30 of x in Q60, clamped to a quarter to 1.
func sqrt30(x int64) int64 {
	x = max(1<<58, min(1<<60, x)) >> 30
	// Newton's method for y = 1/sqrt(x) in Q30, from a table.
	y := int64(sqrtSeed[x>>23-32])
	y = y * (3*one30 - x*(y*y>>30)>>30) >> 31
	y = y * (3*one30 - x*(y*y>>30)>>30) >> 31
	return x * y >> 30
}

// sqrtSeed is 1/sqrt(x) in Q30 at the middle of each 128th of x.
var sqrtSeed = func() (t [97]uint32) {
	for i := range t {
		x := uint64(2*i+65) << 22
		v := 1 << 62 / x << 28 // 2^90 / x
		r := uint64(1) << 30
		for range 40 {
			r = (r + v/r) / 2
		}
		t[i] = uint32(r)
	}
	return t
}()

// unpackQuat returns the quaternion of an index and the smallest three.
func unpackQuat(f []int32, k int64) quat {
	a, b, c := int64(f[1])*k>>16, int64(f[2])*k>>16, int64(f[3])*k>>16
	r := sqrt30(one30*one30 - a*a - b*b - c*c)
	switch f[0] {
	case 0:
		return quat{r, a, b, c}
	case 1:
		return quat{a, r, b, c}
	case 2:
		return quat{a, b, r, c}
	}
	return quat{a, b, c, r}
}

// vec3 is a quaternion's smallest three, in Q4 of a component's step.
type vec3 struct{ x, y, z int64 }

// smallestThree returns the elements of q other than the one of index idx, negated if that one is
// negative.
func (q quat) smallestThree(idx int, k int64) vec3 {
	var largest int64
	var o vec3
	switch idx {
	case 0:
		largest, o = q.x, vec3{q.y, q.z, q.w}
	case 1:
		largest, o = q.y, vec3{q.x, q.z, q.w}
	case 2:
		largest, o = q.z, vec3{q.x, q.y, q.w}
	default:
		largest, o = q.w, vec3{q.x, q.y, q.z}
	}
	if largest < 0 {
		k = -k
	}
	return vec3{(o.x*k + 1<<41) >> 42, (o.y*k + 1<<41) >> 42, (o.z*k + 1<<41) >> 42}
}

// exp returns the rotation by v.
func exp(v *rotationVector) quat {
	x, y, z := v[0], v[1], v[2]
	n := 0
	for max(x, -x, y, -y, z, -z) >= one30*6/10 {
		x, y, z = x>>1, y>>1, z>>1
		n++
	}
	a := (x*x + y*y + z*z) >> 30 // square of the half angle, below 1.1
	// sin(a)/a and cos(a) as polynomials in a*a
	s := int64(one30) - a*(178956971-a*(8947849-a*213044>>30)>>30)>>30
	c := int64(one30) - a*(536870912-a*(44739243-a*(1491308-a*26631>>30)>>30)>>30)>>30
	r := quat{x * s >> 30, y * s >> 30, z * s >> 30, c}
	for ; n > 0; n-- {
		r = r.mul(r)
	}
	return r
}

// extrapolate continues the rotation from a to b by rate in Q16, along the great circle through
// both.
func (b quat) extrapolate(a quat, rate int64) quat {
	dot := (a.x*b.x + a.y*b.y + a.z*b.z + a.w*b.w) >> 30
	sign := dot >> 63 // a and -a are the same orientation
	// With dot = cos t: u = 1 - cos t, and w = (rate t)^2 / 2, at most a half.
	u := max(0, one30-(dot^sign-sign))
	w := min(rate*rate>>16*u>>16, one30/2)
	// s = sin(rate t) / sin t and c = cos(rate t), by their series
	const third, sixth, thirtieth = one30 / 3, one30 / 6, one30 / 30
	f := w - u
	s := rate * (one30 - f*third>>30 + (f>>15)*((w-4*u)>>15)*thirtieth>>30) >> 30
	c := one30 - w + (w>>15)*(f>>15)*sixth>>30
	k := c - s*u>>16
	return quat{
		x: b.x*k>>30 + (b.x-(a.x^sign-sign))*s>>16,
		y: b.y*k>>30 + (b.y-(a.y^sign-sign))*s>>16,
		z: b.z*k>>30 + (b.z-(a.z^sign-sign))*s>>16,
		w: b.w*k>>30 + (b.w-(a.w^sign-sign))*s>>16,
	}
}
