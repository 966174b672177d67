package adaptive

import "sort"

type quat [4]int64

func (m *model) root(v int64) int64 {
	v = clamp(v, 1<<58, 1<<60) >> 30
	y := m.t.Seed[(v>>23)-32]
	for range 2 {
		y = (y * ((3 << 30) - ((v * ((y * y) >> 30)) >> 30))) >> 31
	}
	return (v * y) >> 30
}

func (m *model) unpack(row []int64, limit int64) (q quat) {
	k := ((((1 << 45) / limit) * 92682) + 32768) >> 16
	rest, j := int64(1<<60), 1
	for i := range q {
		if int64(i) != row[0] {
			q[i] = (row[j] * k) >> 16
			rest -= q[i] * q[i]
			j++
		}
	}
	q[row[0]] = m.root(rest)
	return q
}

func product(a, b quat) quat {
	return quat{
		((a[3] * b[0]) + (a[0] * b[3]) + (a[1] * b[2]) - (a[2] * b[1])) >> 30,
		((a[3] * b[1]) - (a[0] * b[2]) + (a[1] * b[3]) + (a[2] * b[0])) >> 30,
		((a[3] * b[2]) + (a[0] * b[1]) - (a[1] * b[0]) + (a[2] * b[3])) >> 30,
		((a[3] * b[3]) - (a[0] * b[0]) - (a[1] * b[1]) - (a[2] * b[2])) >> 30,
	}
}

func exp(v [3]int64) quat {
	n := 0
	for max(abs(v[0]), abs(v[1]), abs(v[2])) >= 644245094 {
		v = [3]int64{v[0] >> 1, v[1] >> 1, v[2] >> 1}
		n++
	}
	a := ((v[0] * v[0]) + (v[1] * v[1]) + (v[2] * v[2])) >> 30
	s := (1 << 30) - ((a * (178956971 - ((a * (8947849 - ((a * 213044) >> 30))) >> 30))) >> 30)
	c := (1 << 30) - ((a * (536870912 - ((a * (44739243 - ((a * (1491308 - ((a * 26631) >> 30))) >> 30))) >> 30))) >> 30)
	q := quat{(v[0] * s) >> 30, (v[1] * s) >> 30, (v[2] * s) >> 30, c}
	for range n {
		q = product(q, q)
	}
	return q
}

func extended(a, b quat, rate int64) (q quat) {
	dot := ((a[0] * b[0]) + (a[1] * b[1]) + (a[2] * b[2]) + (a[3] * b[3])) >> 30
	if dot < 0 {
		a, dot = quat{-a[0], -a[1], -a[2], -a[3]}, -dot
	}
	u := max(0, (1<<30)-dot)
	w := min((((rate*rate)>>16)*u)>>16, 1<<29)
	f := w - u
	s := (rate * ((1 << 30) - ((f * 357913941) >> 30) + ((((f >> 15) * ((w - (4 * u)) >> 15)) * 35791394) >> 30))) >> 30
	c := (1 << 30) - w + ((((w >> 15) * (f >> 15)) * 178956970) >> 30)
	k := c - ((s * u) >> 16)
	for i := range q {
		q[i] = ((b[i] * k) >> 30) + (((b[i] - a[i]) * s) >> 16)
	}
	return q
}

func smallest(q quat, index, limit int64) (out [3]int64) {
	k, j := limit*92682, 0
	if q[index] < 0 {
		k = -k
	}
	for i, e := range q {
		if int64(i) != index {
			out[j] = ((e * k) + (1 << 41)) >> 42
			j++
		}
	}
	return out
}

// turns returns the reference of a quaternion and what it is predicted to be.
func (m *model) turns(r *references, g *field, now []int64) (q, t0, t1 quat) {
	of := func(f *frame) quat { return m.unpack(f.ints[g.at:g.at+4], g.hi) }
	q = of(r.b)
	if g.family == "turned" {
		var v [3]int64
		for i := range v {
			at := g.velocityAt + int64(i)
			v[i] = clamp(((now[at]+r.b.ints[at])*(r.d*g.factor))>>8, -(8 << 30), 8<<30)
		}
		return q, product(exp(v), q), q
	}
	t0, t1 = q, q
	if r.r1 != 0 {
		t0 = extended(of(r.h1), q, r.r1)
	}
	if r.rd != 0 {
		t1 = extended(of(r.hd), q, r.rd)
	}
	return q, t0, t1
}

// likely returns the indexes by falling magnitude, and the ambiguity of the first.
func likely(q quat) (order [4]int64, ambiguity int64) {
	order = [4]int64{0, 1, 2, 3}
	sort.SliceStable(order[:], func(i, j int) bool { return abs(q[order[i]]) > abs(q[order[j]]) })
	return order, clamp(30-bitlen(abs(q[order[0]])-abs(q[order[1]])), 0, 9)
}

func chart(q, t0, t1 quat, index, limit int64) (base [3]int64, f [3][9]int64) {
	b, x, y := smallest(q, index, limit), smallest(t0, index, limit), smallest(t1, index, limit)
	for k := range base {
		base[k] = (b[k] + 8) >> 4
		f[k][0], f[k][1] = x[k]-base[k]<<4, y[k]-base[k]<<4
	}
	return base, f
}

func (s *state) codeQuat(d *coder, r *references, g *field, x *residuals, ints []int64) {
	q, t0, t1 := s.m.turns(r, g, ints)
	order, ambiguity := likely(t0)
	index := order[0]
	if d.decide0(s.groups[g.index].index[ambiguity]) {
		if index = order[1]; d.decide0(59536) {
			if index = order[2]; d.decide0(49536) {
				index = order[3]
			}
		}
	}
	ints[g.at] = index
	base, f := chart(q, t0, t1, index, g.hi)
	x.near = 0
	for k, c := range g.components {
		forecast, magnitude, shape := s.predict(r, c, x, &f[k], base[k])
		v := forecast + s.residual(d, x, magnitude, shape)
		d.fail(v < c.lo || v > c.hi)
		ints[c.at] = v
	}
}
