package snapshots

import (
	"slices"
)

var stateWeights = [3][3][8]int64{
	{{-35600, 55000, 44600, -9600, 3500, 9900, 10100, 2200}, {-20900, 31300, 26300, -5600, 2600, 4500, 4700, 28900}, {-11600, 18400, 16800, 700, -600, 9300, 3900, 26500}},
	{{-22000, 80900, 0, 14900, 20100, 0, 0, 1400}, {-6300, 20900, 0, 3900, 4700, 0, 0, 50000}, {5600, 13600, 0, 15400, -4200, 0, 0, 31700}},
	{{3000, 30900, 0, 0, 27700, 0, 5800, -200}, {4900, 14000, 0, 0, 15900, 0, 700, 29100}, {-14400, 11200, 0, 0, 18000, 0, 5100, 41800}},
}

// scales is section 11.
type scales struct {
	r      *stateReceiver
	w      *[3][8]int64
	bias   *[3]int64
	common [3]int64
	missed int64
	scale  int64
}

func (r *stateReceiver) scales(i int, elapsed, unsteady, speed, learned, velocity int64) *scales {
	s := &scales{r: r, w: &stateWeights[r.fields[i].weights], bias: &r.out.models.fields[i].bias}
	for k, w := range s.w {
		s.common[k] = w[0]*2048 + w[1]*log(16*elapsed) + w[2]*unsteady + w[3]*speed + w[4]*learned + w[5]*velocity
	}
	return s
}

func (s *scales) residual(k int) int64 {
	s.scale = (s.common[k]+s.w[k][7]*log(s.missed))>>16 + s.bias[k]>>4
	return s.r.number(level(s.scale))
}

func (s *scales) learn(k int, miss int64) {
	s.bias[k] += clamp(log(miss)-s.scale, -2048, 2048) >> 2
	s.missed += abs(miss)
}

func (s *scales) end(i int, u *stateUpdate) {
	s.r.logs[i] = log(s.missed)
	u.misses[i] = clamp(log(s.missed)>>5, 0, 255)
}

func (r *stateReceiver) motion(i int, u, base *stateUpdate, elapsed int64) {
	f := &r.fields[i]
	a, cur := base.row[f.at:f.at+f.n], u.row[f.at:f.at+f.n]
	var to [3]int64
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	switch {
	case f.velocity >= 0:
		v := r.fields[f.velocity].at
		for k := range cur {
			then, is := base.row[v+k]*f.factor, u.row[v+k]*f.factor
			to[k] = clamp(((then+is)*elapsed>>1+is-then)>>12, -1<<40, 1<<40)
			speed += abs(is) * elapsed >> 12
			unsteady += abs(is-then) * elapsed >> 12
		}
		velocity = r.logs[f.velocity]
	case f.isVelocity:
		for k := range cur {
			to[k] = -a[k] * (min(elapsed, 60) * 39) >> 8
			speed += abs(a[k]) * 16
		}
	default:
		for k := range cur {
			to[k] = clamp(base.trends[i][k]*elapsed>>5, -1<<40, 1<<40)
			unsteady += abs(to[k])
		}
	}
	s := r.scales(i, elapsed, log(unsteady), log(speed), base.misses[i]<<5, velocity)
	turn := f.hi - f.lo + 1
	for k := range cur {
		guess := a[k]*16 + to[k]
		if f.class == "angle" {
			guess = 16*f.lo + mod(guess-16*f.lo, 16*turn)
		} else {
			guess = clamp(guess, 16*f.lo, 16*f.hi)
		}
		v := (guess + 8) >> 4
		d := s.residual(k)
		change := func() int64 { return cur[k] - a[k] }
		if f.class == "angle" {
			r.bad = r.bad || wrap(d, turn) != d
			cur[k] = f.lo + mod(v+d-f.lo, turn)
			change = func() int64 { return wrap(cur[k]-a[k], turn) }
		} else {
			cur[k] = r.bounded(v+d, f.lo, f.hi)
		}
		s.learn(k, 16*(v+d)-guess)
		if f.trends {
			u.trends[i][k] = clamp(change()*256/elapsed, -1<<30, 1<<30)
		}
	}
	s.end(i, u)
}

func (r *stateReceiver) quat(i int, u, base *stateUpdate, elapsed int64) {
	m, f := r.out.models, &r.fields[i]
	q := f.q.unpack(base.row[f.at : f.at+4])
	cur := u.row[f.at : f.at+4]
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	if f.velocity >= 0 {
		v := r.fields[f.velocity].at
		var turn [3]int64
		for k := range turn {
			then, is := base.row[v+k]*f.factor, u.row[v+k]*f.factor
			turn[k] = clamp(((then+is)*elapsed>>1+is-then)>>14, -1<<22, 1<<22)
			speed += min(abs(is)*elapsed>>14, 1<<22)
			unsteady += min(abs(is-then)*elapsed>>14, 1<<22)
		}
		q = multiply(rotation(turn), q)
		velocity = r.logs[f.velocity]
	}
	unsteady, speed = f.q.size(unsteady), f.q.size(speed)
	learned := base.misses[i] << 5
	doubt := clamp((unsteady+learned)>>9, 0, 7)
	order := []int{0, 1, 2, 3}
	slices.SortStableFunc(order, func(a, b int) int { return int(abs(q[b]) - abs(q[a])) })
	margin := f.q.size(abs(q[order[0]]) - abs(q[order[1]]))
	largest, other := order[0], r.bit(&m.largest[8*clamp((margin+256)*2>>8, 0, 39)+doubt])
	if other {
		if largest = order[1]; r.bit(&m.other[0]) {
			pair := []int{min(order[2], order[3]), max(order[2], order[3])}
			largest = pair[truth(r.bit(&m.other[1]))]
		}
	}
	cur[0] = int64(largest)
	if q[largest] < 0 {
		q = quat{-q[0], -q[1], -q[2], -q[3]}
	}
	s := r.scales(i, elapsed, unsteady, speed, learned, velocity)
	if other {
		for k := range s.common {
			s.common[k] += s.w[k][6] * 2048
		}
	}
	k := 0
	for e := range q {
		if e == largest {
			continue
		}
		guess := clamp(f.q.pack(q[e]), 16*f.lo, 16*f.hi)
		v := (guess + 8) >> 4
		d := s.residual(k)
		cur[k+1] = r.bounded(v+d, f.lo, f.hi)
		s.learn(k, 16*(v+d)-guess)
		k++
	}
	s.end(i, u)
}

func rotation(v [3]int64) quat {
	n := 0
	for max(abs(v[0]), abs(v[1]), abs(v[2]))>>n > 65536 {
		n++
	}
	q := exp([3]int64{v[0] >> n, v[1] >> n, v[2] >> n})
	for range n {
		q = multiply(q, q)
	}
	return q
}
