package quat

// precise1 is 1 in Q30.
const precise1 = 1 << 30

// Precise is a unit quaternion in Q30, for components of up to 20 bits; [Fixed] is for speed. The
// compiler keeps structs in registers, but not arrays.
type Precise struct{ X, Y, Z, W int64 }

// Vector is an axis times half the angle, in radians, Q30.
type Vector [3]int64

// Clamp limits each axis to 8.
func (v *Vector) Clamp() {
	for i := range v {
		v[i] = max(-8*precise1, min(8*precise1, v[i]))
	}
}

// Mul returns the product ab: the rotation b followed by a.
func (a Precise) Mul(b Precise) Precise {
	return Precise{
		X: (a.W*b.X + a.X*b.W + a.Y*b.Z - a.Z*b.Y) >> 30,
		Y: (a.W*b.Y - a.X*b.Z + a.Y*b.W + a.Z*b.X) >> 30,
		Z: (a.W*b.Z + a.X*b.Y - a.Y*b.X + a.Z*b.W) >> 30,
		W: (a.W*b.W - a.X*b.X - a.Y*b.Y - a.Z*b.Z) >> 30,
	}
}

// sqrt30 returns the square root in Q30 of x in Q60. x is clamped to the range from a quarter to 1.
func sqrt30(x int64) int64 {
	x = max(1<<58, min(1<<60, x)) >> 30
	// Newton's method for y = 1/sqrt(x) in Q30, from a table.
	y := int64(sqrtSeed[x>>23-32])
	y = y * (3*precise1 - x*(y*y>>30)>>30) >> 31
	y = y * (3*precise1 - x*(y*y>>30)>>30) >> 31
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

// SqrtSeed returns the starting values of the square root, which are part of the wire format.
func SqrtSeed() [97]uint32 { return sqrtSeed }

// UnpackPrecise returns the quaternion with index f[0] of the largest element and smallest three
// f[1:]. One step is k in Q46.
func UnpackPrecise(f []int32, k int64) Precise {
	a, b, c := int64(f[1])*k>>16, int64(f[2])*k>>16, int64(f[3])*k>>16
	r := sqrt30(precise1*precise1 - a*a - b*b - c*c)
	switch f[0] {
	case 0:
		return Precise{r, a, b, c}
	case 1:
		return Precise{a, r, b, c}
	case 2:
		return Precise{a, b, r, c}
	}
	return Precise{a, b, c, r}
}

// Smallest is the smallest three of a quaternion, in Q4 of a component's step.
type Smallest struct{ X, Y, Z int64 }

// Smallest returns the elements of q other than element idx, in k steps per 1 (Q16). It negates
// them if element idx is negative.
func (q Precise) Smallest(idx int, k int64) Smallest {
	var largest int64
	var o Smallest
	switch idx {
	case 0:
		largest, o = q.X, Smallest{q.Y, q.Z, q.W}
	case 1:
		largest, o = q.Y, Smallest{q.X, q.Z, q.W}
	case 2:
		largest, o = q.Z, Smallest{q.X, q.Y, q.W}
	default:
		largest, o = q.W, Smallest{q.X, q.Y, q.Z}
	}
	if largest < 0 {
		k = -k
	}
	return Smallest{(o.X*k + 1<<41) >> 42, (o.Y*k + 1<<41) >> 42, (o.Z*k + 1<<41) >> 42}
}

// ExpPrecise returns the rotation by v.
func ExpPrecise(v *Vector) Precise {
	x, y, z := v[0], v[1], v[2]
	n := 0
	for max(x, -x, y, -y, z, -z) >= precise1*6/10 {
		x, y, z = x>>1, y>>1, z>>1
		n++
	}
	a := (x*x + y*y + z*z) >> 30 // square of the half angle, below 1.1
	// sin(a)/a and cos(a) as polynomials in a*a
	s := int64(precise1) - a*(178956971-a*(8947849-a*213044>>30)>>30)>>30
	c := int64(precise1) - a*(536870912-a*(44739243-a*(1491308-a*26631>>30)>>30)>>30)>>30
	r := Precise{x * s >> 30, y * s >> 30, z * s >> 30, c}
	for ; n > 0; n-- {
		r = r.Mul(r)
	}
	return r
}

// Extrapolate continues the rotation from a to b by rate in Q16, along the great circle through
// both.
func (b Precise) Extrapolate(a Precise, rate int64) Precise {
	dot := (a.X*b.X + a.Y*b.Y + a.Z*b.Z + a.W*b.W) >> 30
	sign := dot >> 63 // a and -a are the same orientation
	// With dot = cos t: u = 1 - cos t, and w = (rate t)^2 / 2, at most a half.
	u := max(0, precise1-(dot^sign-sign))
	w := min(rate*rate>>16*u>>16, precise1/2)
	// s = sin(rate t) / sin t and c = cos(rate t), by their series
	const third, sixth, thirtieth = precise1 / 3, precise1 / 6, precise1 / 30
	f := w - u
	s := rate * (precise1 - f*third>>30 + (f>>15)*((w-4*u)>>15)*thirtieth>>30) >> 30
	c := precise1 - w + (w>>15)*(f>>15)*sixth>>30
	k := c - s*u>>16
	return Precise{
		X: b.X*k>>30 + (b.X-(a.X^sign-sign))*s>>16,
		Y: b.Y*k>>30 + (b.Y-(a.Y^sign-sign))*s>>16,
		Z: b.Z*k>>30 + (b.Z-(a.Z^sign-sign))*s>>16,
		W: b.W*k>>30 + (b.W-(a.W^sign-sign))*s>>16,
	}
}
