package statesync

// codeQuat codes an orientation, told from the baseline's turned by the angular velocities.
func (w *walk) codeQuat(i int, o *object, cur, base []int32) {
	s, f := w.out.state, &w.plan.fields[i]
	m := &s.fields[i]
	q0 := f.unpack(base)
	var x [3][guessTerms]int64
	var guess [3]int64
	var speed, unsteady int64
	for k := range x {
		x[k] = w.turns(f, i, o, k)
		guess[k] = clamp(m.guess[k].predict(&x[k]), -64*one, 64*one)
		speed += abs(x[k][1])
		unsteady += abs(x[k][1] - x[k][0])
	}
	by := turn(guess)
	q := by.mul(&q0)

	largest, other := w.largest(cur, &q, f.step)
	y := w.terms(i, o, log2(unsteady*16/f.step), log2(speed*16/f.step))
	if other {
		y[7] = logOne
	}
	w.scaling.open(&m.scale, &y)
	if q[largest] < 0 {
		q = quat{-q[0], -q[1], -q[2], -q[3]}
	}
	missed := int64(0)
	for i, k := 0, 0; i < 4; i++ {
		if i == largest {
			continue
		}
		to := f.pack(q[i])
		p := clamp(to, int64(f.Lo)*16, int64(f.Hi)*16)
		scale := w.scaling.predict(k, log2(missed))
		v := (p + 8) >> 4
		v += w.number(&s.turn, level(scale), sign3(to-f.pack(q0[i])), int64(cur[k+1])-v)
		cur[k+1] = w.bounded(v, f.Lo, f.Hi)
		e := int64(cur[k+1])*16 - p
		w.scaling.learn(k, log2(e)-scale)
		missed += abs(e)
		k++
	}
	now := f.unpack(cur)
	off := between(&q, &now)
	for k := range x {
		m.guess[k].learn(&x[k], off[k], 32*f.step+unsteady/4+speed/16+abs(off[k]))
	}
	*w.around.miss(o.here, i) = off
	w.missed(i, o, missed)
}

// turns is what turns an orientation about axis k: the angular velocity of the baseline, the new one and the change
// within a tick, and what the nearest object missed by. Q30.
func (w *walk) turns(f *field, i int, o *object, k int) (x [guessTerms]int64) {
	if f.by >= 0 {
		v := &w.plan.fields[f.by]
		was, is := int64(o.was[v.at+k]), int64(o.now[v.at+k])
		x[0], x[1], x[2] = bound(was*f.per*o.elapsed), bound(is*f.per*o.elapsed), bound((is-was)*f.per)
		x[3] = bound(w.around.miss(o.here, f.by)[k] * f.per * o.elapsed >> 4)
	}
	if o.near >= 0 {
		x[4] = w.around.miss(o.near, i)[k]
	}
	return x
}

// bound keeps an angle within what is computed with.
func bound(v int64) int64 { return clamp(v, -64*one, 64*one) }

// largest codes the index of the largest element and says whether it is another than that of the prediction q.
func (w *walk) largest(cur []int32, q *quat, step int64) (largest int, other bool) {
	s, first, second := w.out.state, 0, -1
	for i := range q {
		if abs(q[i]) > abs(q[first]) {
			first = i
		}
	}
	for i := range q {
		if i != first && (second < 0 || abs(q[i]) > abs(q[second])) {
			second = i
		}
	}
	margin := log2((abs(q[first]) - abs(q[second])) * 16 / step)
	if !w.bit(&s.largest[level(margin)], int(cur[0]) != first) {
		cur[0] = int32(first)
		return first, false
	}
	largest = second
	if w.bit(&s.other[0], int(cur[0]) != second) {
		var rest [2]int
		n := 0
		for i := range q {
			if i != first && i != second {
				rest[n] = i
				n++
			}
		}
		largest = rest[0]
		if w.bit(&s.other[1], int(cur[0]) == rest[1]) {
			largest = rest[1]
		}
	}
	cur[0] = int32(largest)
	return largest, true
}
