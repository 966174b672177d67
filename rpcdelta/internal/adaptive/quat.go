package adaptive

// one30 is 1 in Q30.
const one30 = 1 << 30

// quat is x, y, z, w in Q30.
type quat [4]int64

// spin is a rotation vector of half the angle, in Q30.
type spin [3]int64

// limit bounds a vector to eight half radians an axis.
func (v *spin) limit() {
	for i := range v {
		v[i] = max(-8*one30, min(8*one30, v[i]))
	}
}

func (r *quat) mul(a, b *quat) {
	x := (a[3]*b[0] + a[0]*b[3] + a[1]*b[2] - a[2]*b[1]) >> 30
	y := (a[3]*b[1] - a[0]*b[2] + a[1]*b[3] + a[2]*b[0]) >> 30
	z := (a[3]*b[2] + a[0]*b[1] - a[1]*b[0] + a[2]*b[3]) >> 30
	w := (a[3]*b[3] - a[0]*b[0] - a[1]*b[1] - a[2]*b[2]) >> 30
	r[0], r[1], r[2], r[3] = x, y, z, w
}

// root is the square root in Q30 of x in Q60, for x of a quarter to 1; others
// count as the nearest of these.
func root(x int64) int64 {
	x = max(1<<58, min(1<<60, x)) >> 30
	// y approaches 1/sqrt(x) in Q30 by Newton's steps from a table
	y := rootSeed[x>>25-8]
	for range 3 {
		y = y * (3*one30 - x*(y*y>>30)>>30) >> 31
	}
	return x * y >> 30
}

// rootSeed is 1/sqrt(x) in Q30 at the middle of each 32nd.
var rootSeed = func() (t [25]int64) {
	for i := range t {
		x := uint64(2*i+17) << 24
		v := 1 << 62 / x << 28 // 2^90 / x
		r := uint64(1) << 30
		for range 40 {
			r = (r + v/r) / 2
		}
		t[i] = int64(r)
	}
	return t
}()

// unpack rebuilds a quaternion from its index and smallest three.
func (r *quat) unpack(f []int32, k int64) {
	s := int64(one30) * one30
	big := f[0] & 3
	for j, i := range rest[big] {
		v := max(-one30, min(one30, int64(f[1+j])*k>>16))
		r[i&3] = v
		s -= v * v
	}
	r[big] = root(s)
}

// rest are the other indexes beside each.
var rest = [4][3]uint8{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}

// chart expresses q as the smallest three under index idx, in Q4 of their
// unit.
func (r *quat) chart(idx int, k int64) (o [3]int64) {
	if r[idx&3] < 0 {
		k = -k
	}
	for j, i := range rest[idx&3] {
		o[j] = (r[i&3]*k + 1<<41) >> 42
	}
	return o
}

// exp is the rotation by v, twice its angle.
func (r *quat) exp(v *spin) {
	x, y, z := v[0], v[1], v[2]
	n := 0
	for max(x, -x, y, -y, z, -z) >= one30*6/10 {
		x, y, z = x>>1, y>>1, z>>1
		n++
	}
	a := (x*x + y*y + z*z) >> 30 // squared half angle, below 1.1
	// sin(a)/a and cos(a) as polynomials in a*a
	s := int64(one30) - a*(178956971-a*(8947849-a*213044>>30)>>30)>>30
	c := int64(one30) - a*(536870912-a*(44739243-a*(1491308-a*26631>>30)>>30)>>30)>>30
	r[0], r[1], r[2], r[3] = x*s>>30, y*s>>30, z*s>>30, c
	for ; n > 0; n-- {
		r.mul(r, r)
	}
}

// between is the vector that takes a to b.
func between(a, b *quat) (v spin) {
	c := quat{-a[0], -a[1], -a[2], a[3]}
	var r quat
	r.mul(b, &c)
	if r[3] < 0 {
		for i := range r {
			r[i] = -r[i]
		}
	}
	u := (r[0]*r[0] + r[1]*r[1] + r[2]*r[2]) >> 30
	k := int64(one30) + u*(178956971+u*(80530637+u*47934903>>30)>>30)>>30
	for i := range v {
		v[i] = r[i] * k >> 30
	}
	return v
}
