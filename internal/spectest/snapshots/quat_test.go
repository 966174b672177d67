package snapshots

type (
	quat   [4]int64
	matrix [3][3]int64
)

type quantizer struct{ step, per, zero, unitLog int64 }

func newQuantizer(lo, hi int64) quantizer {
	span := hi - lo
	return quantizer{46341 << 24 / span, span * 8 << 24 / 46341, lo + hi, log((92682/span + 1) * 16)}
}

func (g *quantizer) pack(e int64) int64 { return (e*g.per+1<<23)>>24 + g.zero*8 }
func (g *quantizer) size(a int64) int64 { return max(log(a*16)-g.unitLog, 0) }

func (g *quantizer) unpack(row []int64) (q quat) {
	left, k := int64(1)<<32, 1
	for i := range q {
		if int64(i) == row[0] {
			continue
		}
		q[i] = ((2*row[k]-g.zero)*g.step + 1<<23) >> 24
		left -= q[i] * q[i]
		k++
	}
	q[row[0]] = isqrt(max(0, left))
	return q
}

func multiply(q, b quat) quat {
	return quat{
		(q[3]*b[0] + q[0]*b[3] + q[1]*b[2] - q[2]*b[1]) >> 16,
		(q[3]*b[1] - q[0]*b[2] + q[1]*b[3] + q[2]*b[0]) >> 16,
		(q[3]*b[2] + q[0]*b[1] - q[1]*b[0] + q[2]*b[3]) >> 16,
		(q[3]*b[3] - q[0]*b[0] - q[1]*b[1] - q[2]*b[2]) >> 16,
	}
}

func between(a, b quat) [3]int64 {
	r := multiply(b, quat{-a[0], -a[1], -a[2], a[3]})
	if r[3] < 0 {
		r = quat{-r[0], -r[1], -r[2]}
	}
	s := (r[0]*r[0] + r[1]*r[1] + r[2]*r[2]) >> 16
	k := 131072 + ((s * (21845 + ((s * (9830 + (s * 5851 >> 16))) >> 16))) >> 16)
	return [3]int64{r[0] * k >> 16, r[1] * k >> 16, r[2] * k >> 16}
}

func exp(v [3]int64) quat {
	for i := range v {
		v[i] = clamp(v[i], -196608, 196608)
	}
	x := min((v[0]*v[0]+v[1]*v[1]+v[2]*v[2])>>18, 196608)
	sin := 65536 - (x*(65536-(x*(65536-(x*(65536-x/72)>>16)/42)>>16)/20)>>16)/6
	cos := 65536 - (x*(65536-(x*(65536-(x*(65536-x/56)>>16)/30)>>16)/12)>>16)/2
	return quat{v[0] * sin >> 17, v[1] * sin >> 17, v[2] * sin >> 17, cos}
}

func matrixOf(q quat) matrix {
	x, y, z, w := q[0], q[1], q[2], q[3]
	return matrix{
		{65536 - ((y*y + z*z) >> 15), (x*y - z*w) >> 15, (x*z + y*w) >> 15},
		{(x*y + z*w) >> 15, 65536 - ((x*x + z*z) >> 15), (y*z - x*w) >> 15},
		{(x*z - y*w) >> 15, (y*z + x*w) >> 15, 65536 - ((x*x + y*y) >> 15)},
	}
}

func (m *matrix) extent(k int) int64 { return abs(m[k][0]) + abs(m[k][1]) + abs(m[k][2]) }

func (m *matrix) corner(a int) (c [3]int64) {
	for i, v := range m[a] {
		if c[i] = 1; v > 0 {
			c[i] = -1
		}
	}
	return c
}

func move(m, n *matrix, c [3]int64, k int) (s int64) {
	for i := range c {
		s += (n[k][i] - m[k][i]) * c[i]
	}
	return s
}

func (a *axis) above(m *matrix, k int, at int64) int64 {
	return at - a.floor - (a.half * (m.extent(k) - 65536) >> 16)
}
