package statesync

// codeMotion codes numbers that move together, told from where the baseline and velocities would have them.
func (w *walk) codeMotion(i int, o *object, cur, base []int32) {
	s, f := w.out.state, &w.plan.fields[i]
	m, n := &s.fields[i], &s.motion
	if f.by >= 0 {
		n = &s.place
	}
	speed, unsteady := w.speeds(f, o)
	y := [terms]int64{logOne, log2(o.elapsed * 16), log2(unsteady), log2(speed), int64(o.job.base.miss[i])}
	if o.near != nil {
		y[5] = o.near.missed[i]
	}
	if f.by >= 0 {
		y[7] = o.here.missed[f.by]
	}
	missed := int64(0)
	for k := range cur {
		x := w.moves(i, o, k)
		from := int64(base[k]) * 16
		guess := clamp(from+m.guess[k].predict(&x), int64(f.Lo)*16, int64(f.Hi)*16)
		y[6] = log2(missed)
		scale := m.scale[k].predict(&y)
		v := (guess + 8) >> 4
		v += w.number(n, level(scale), sign3(x[0])*3+sign3(x[1]), int64(cur[k])-v)
		cur[k] = w.bounded(v, f.Lo, f.Hi)

		now := int64(cur[k]) * 16
		e := now - guess
		m.guess[k].learn(&x, e, 32+unsteady/4+speed/16+abs(e))
		m.scale[k].learn(&y, log2(e)-scale, logOne)
		o.to.trend[f.at+k] = int32(clamp((now-from)*16/o.elapsed, -1<<30, 1<<30))
		o.here.miss[i][k] = e
		missed += abs(e)
	}
	o.here.missed[i] = log2(missed)
	o.to.miss[i] = int32(o.here.missed[i])
}

// moves is what moves component k: of a field that has a velocity that at the baseline, the new one, and the change of
// it within a tick; of another field its trend; of both what the nearest object missed by, and the time. Q4.
func (w *walk) moves(i int, o *object, k int) (x [terms]int64) {
	f := &w.plan.fields[i]
	e := o.elapsed
	if f.by >= 0 {
		v := &w.plan.fields[f.by]
		was, is := int64(o.job.base.row[v.at+k]), int64(o.to.row[v.at+k])
		x[0], x[1], x[2] = was*f.per*e>>12, is*f.per*e>>12, (is-was)*f.per>>12
		x[3] = o.here.miss[f.by][k] * f.per * e >> 16
	} else {
		x[1] = int64(o.job.base.trend[f.at+k]) * e >> 4
		x[3] = int64(o.job.base.row[f.at+k]) * e / 8
	}
	x[4] = e * 16
	if o.near != nil {
		x[5] = o.near.miss[i][k]
	}
	return x
}

// speeds says how fast a field moves over the time elapsed, and how much that changed. Q4.
func (w *walk) speeds(f *field, o *object) (speed, unsteady int64) {
	for k := range f.N {
		if f.by < 0 {
			unsteady += abs(int64(o.job.base.trend[f.at+k])) * o.elapsed >> 4
			speed += abs(int64(o.job.base.row[f.at+k])) * 16
			continue
		}
		v := &w.plan.fields[f.by]
		was, is := int64(o.job.base.row[v.at+k]), int64(o.to.row[v.at+k])
		speed += abs(is*f.per) * o.elapsed >> 12
		unsteady += abs((is-was)*f.per) * o.elapsed >> 12
	}
	return speed, unsteady
}
