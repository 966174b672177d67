package main

import "math"

// quat is x, y, z, w.
type quat [4]float64

func (f *field) quatOf(row []float64) (q quat) {
	big, left := int(row[f.at]), 1.0
	for i, j := range rest(big) {
		v := row[f.at+1+i] / f.limit / math.Sqrt2
		q[j] = v
		left -= v * v
	}
	q[big] = math.Sqrt(max(left, 0))
	return q
}

func rest(big int) [3]int {
	r := [3]int{}
	for i := range r {
		r[i] = i
		if i >= big {
			r[i]++
		}
	}
	return r
}

// chart is the smallest three of q under the index big, in steps.
func (f *field) chart(q quat, big int) (o [3]float64) {
	s := f.limit * math.Sqrt2
	if q[big] < 0 {
		s = -s
	}
	for i, j := range rest(big) {
		o[i] = q[j] * s
	}
	return o
}

func mul(a, b quat) quat {
	return quat{
		a[3]*b[0] + a[0]*b[3] + a[1]*b[2] - a[2]*b[1],
		a[3]*b[1] - a[0]*b[2] + a[1]*b[3] + a[2]*b[0],
		a[3]*b[2] + a[0]*b[1] - a[1]*b[0] + a[2]*b[3],
		a[3]*b[3] - a[0]*b[0] - a[1]*b[1] - a[2]*b[2],
	}
}

// exp is the rotation by v, in radians.
func exp(v [3]float64) quat {
	a := math.Sqrt(v[0]*v[0]+v[1]*v[1]+v[2]*v[2]) / 2
	k := .5
	if a > 1e-9 {
		k = math.Sin(a) / a / 2
	}
	return quat{v[0] * k, v[1] * k, v[2] * k, math.Cos(a)}
}

// between is the rotation that takes a to b, in radians.
func between(a, b quat) (v [3]float64) {
	r := mul(b, quat{-a[0], -a[1], -a[2], a[3]})
	if r[3] < 0 {
		r = quat{-r[0], -r[1], -r[2], -r[3]}
	}
	s := math.Sqrt(r[0]*r[0] + r[1]*r[1] + r[2]*r[2])
	k := 2.0
	if s > 1e-9 {
		k = 2 * math.Atan2(s, r[3]) / s
	}
	for i := range v {
		v[i] = r[i] * k
	}
	return v
}

// turns appends where rotations lead, in the coordinates in which the true
// orientation is sent.
func (s *series) turns(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	big := int(s.rows[n][f.at])
	base := f.quatOf(s.rows[b])
	hold := f.chart(base, big)
	to := func(v [3]float64) {
		t := f.chart(mul(exp(v), base), big)
		for i := range k + 1 {
			x = append(x, t[i]-hold[i])
		}
	}
	for _, lag := range []int{1, 2, 4, s.d} {
		v := between(f.quatOf(s.rows[b-lag]), base)
		for i := range v {
			v[i] *= float64(s.d) / float64(lag)
		}
		to(v)
	}
	if w := f.velocity; w != nil {
		rate := func(m int) (v [3]float64) {
			for i := range v {
				v[i] = s.rows[m][w.at+i] * f.factor * float64(s.d)
			}
			return v
		}
		now, was, before, far := rate(n), rate(b), rate(b-1), rate(b-s.d)
		var mean [3]float64
		for i := range mean {
			mean[i] = (now[i] + was[i]) / 2
			before[i] = mean[i] + was[i] - before[i]
			far[i] = mean[i] + was[i] - far[i]
		}
		to(mean)
		to(now)
		to(was)
		to(before)
		to(far)
	}
	for j := range k {
		x = append(x, s.rows[n][f.at+1+j]-hold[j])
	}
	return x, s.rows[n][f.at+1+k] - hold[k]
}
