package snapshot

// codePlace codes field number field, numbers that move together, into cur.
func (w *walk) codePlace(field int, m *motionModel, cur []int32) {
	o, f, at := &w.object, &w.schema.fields[field], w.schema.at[field]
	anchor := field == w.schema.anchor
	if !anchor {
		w.steadiness(at, f.N)
	}
	last := &w.state.last[field*len(w.hist.base.objects)+o.index]
	acc := int64(0)
	for k := range f.N {
		acc += abs(w.velocity(at+k, -1, 1) - w.velocity(at+k, -1, refs-1))
	}
	var miss, shift [3]int64
	missed := int64(0)
	for k := range f.N {
		base := int64(o.base[at+k]) * 16
		g := w.velocity(at+k, -1, 2)
		x := [10]int64{g, w.velocity(at+k, -1, 0) - g, w.velocity(at+k, 0, 1) - g, g - w.velocity(at+k, 2, refs-1), 160}
		if o.near != nil {
			x[5] = o.near.miss[k]
		}
		class, out := o.class, int64(0)
		if anchor {
			if out = max(0, w.hist.low[k]*16-base-g); out > 0 && class != 3 {
				class = 6
			}
			x[6] = out
		}
		copy(x[7:], miss[:k])
		l := &m.place[k][class]
		guess := base + l.predict(x[:])
		guess = clamp(guess, int64(f.Lo)*16, int64(f.Hi)*16)

		y := [terms]int64{log2(o.jerk), log2(o.jerk1), log2(acc), log2(o.speed), log2(missed), 0, int64(*last), logOne}
		switch {
		case o.near != nil:
			y[5], y[10] = log2(o.near.place1), o.gap
		default:
			y[9] = logOne
		}
		if class == 3 {
			y[8] = logOne
		}
		y[11], y[12] = log2(g), log2(out)
		scale := m.scale[k].predict(y[:])
		level := int(clamp((scale+256)*3>>8, 0, levels-1))

		sign := k*9 + 3*sign3(x[1]) + sign3(g)
		if reach := int64(16) << clamp(scale/logOne+1, 0, 20); anchor && guess-w.hist.low[k]*16 < reach {
			sign += 27
			if guess-w.hist.low[k]*16 < reach/4 {
				sign += 27
			}
		}
		v := (guess + 8) >> 4
		v += w.number(&m.numbers, level, sign, int64(cur[k])-v)
		cur[k] = w.bounded(v, f.Lo, f.Hi)

		e := int64(cur[k])*16 - guess
		l.learn(x[:], e, 64+o.jerk+o.jerk1/2+o.speed/16+abs(e))
		m.scale[k].learn(y[:], log2(e)-scale, 256)
		miss[k], shift[k] = e, int64(cur[k])*16-base
		missed += abs(e)
	}
	*last = int16(log2(missed))
	if anchor {
		o.miss, o.missed, o.shift = miss, missed, shift
	}
}

func sign3(v int64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}
