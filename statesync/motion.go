package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// missedTerm is the term of a scale that says what the components before missed by.
const missedTerm = 8

// codeMotion codes numbers that move together, or angles, told from where the baseline and velocities would have them.
func (w *walk) codeMotion(i int, o *object, cur, base []int32) {
	s, f := w.out.state, &w.plan.fields[i]
	m, signs := &s.fields[i], motionSigns
	if f.by >= 0 {
		signs = placeSigns
	}
	speed, unsteady := w.speeds(f, o)
	y := w.terms(i, o, fixed.Log2(unsteady), fixed.Log2(speed))
	here := w.around.miss(o.here, i)
	missed := int64(0)
	for k := range cur {
		x := w.moves(i, o, k)
		from := int64(base[k]) * 16
		guess := f.within(from + m.guess[k].Predict(&x))
		y[missedTerm] = fixed.Log2(missed)
		scale := m.scale[k].Predict(&y)
		v := (guess + 8) >> 4
		d := w.Int(&s.numbers, rangecoder.Level(scale), signs+rangecoder.Sign3(x[0])*3+rangecoder.Sign3(x[1]), f.apart(int64(cur[k])-v))
		cur[k] = w.moved(f, v, d)

		e := (v+d)*16 - guess
		m.guess[k].Learn(&x, e, 32+unsteady/4+speed/16+fixed.Abs(e))
		m.scale[k].Adapt(&y, fixed.Log2(e)-scale)
		if f.trend >= 0 {
			o.to.learned()[f.trend+k] = int32(fixed.Clamp(f.apart(int64(cur[k])-int64(base[k]))*256/o.elapsed, -1<<30, 1<<30))
		}
		here[k] = e
		missed += fixed.Abs(e)
	}
	w.missed(i, o, missed)
}

// within keeps a prediction, in Q4, within the field's bounds.
func (f *field) within(v int64) int64 {
	if f.turn > 0 {
		return int64(f.Lo)*16 + mod(v-int64(f.Lo)*16, f.turn*16)
	}
	return fixed.Clamp(v, int64(f.Lo)*16, int64(f.Hi)*16)
}

// apart is a difference; of angles the shorter way around.
func (f *field) apart(d int64) int64 {
	if f.turn > 0 {
		return mod(d+f.turn/2, f.turn) - f.turn/2
	}
	return d
}

// moved is the component that is d from v.
func (w *walk) moved(f *field, v, d int64) int32 {
	if f.turn > 0 {
		w.bad = w.bad || f.apart(d) != d
		return int32(int64(f.Lo) + mod(v+d-int64(f.Lo), f.turn))
	}
	return w.bounded(v+d, f.Lo, f.Hi)
}

// mod is the remainder of v by n, 0 or above.
func mod(v, n int64) int64 {
	if v %= n; v < 0 {
		v += n
	}
	return v
}

// terms are those that tell by how much predictions will miss.
func (w *walk) terms(i int, o *object, unsteady, speed int64) (y [lms.Terms]int64) {
	y = [lms.Terms]int64{lms.Bias, fixed.Log2(o.elapsed * 16), unsteady, speed, int64(o.learned[w.plan.trends+i])}
	if o.near >= 0 {
		y[5] = *w.around.missed(o.near, i)
	}
	if by := w.plan.fields[i].by; by >= 0 {
		y[6] = *w.around.missed(o.here, by)
	}
	return y
}

// missed notes what a field missed by.
func (w *walk) missed(i int, o *object, by int64) {
	v := fixed.Log2(by)
	*w.around.missed(o.here, i), o.to.learned()[w.plan.trends+i] = v, int32(v)
}

// moves is what moves component k: of a field that has a velocity that at the baseline, the new one, and the change of
// it within a tick; of another field its trend, and, of numbers, its size; of both what the nearest object missed by, and the time. Q4.
func (w *walk) moves(i int, o *object, k int) (x [lms.Terms]int64) {
	f := &w.plan.fields[i]
	e := o.elapsed
	if f.by >= 0 {
		at := w.plan.fields[f.by].at + k
		was, is := int64(o.was[at]), int64(o.now[at])
		x[0], x[1], x[2] = near(was*f.per*e>>12), near(is*f.per*e>>12), near((is-was)*f.per>>12)
		x[3] = near(w.around.miss(o.here, f.by)[k] * f.per * e >> 16)
	} else {
		x[1] = near(int64(o.learned[f.trend+k]) * e >> 4)
		if f.turn == 0 {
			x[3] = near(int64(o.was[f.at+k]) * e / 8)
		}
	}
	x[4] = e * 16
	if o.near >= 0 {
		x[5] = near(w.around.miss(o.near, i)[k])
	}
	return x
}

// near keeps a term within what is computed with.
func near(v int64) int64 { return fixed.Clamp(v, -1<<40, 1<<40) }

// speeds says how fast a field moves over the time elapsed, and how much that changed. Q4.
func (w *walk) speeds(f *field, o *object) (speed, unsteady int64) {
	if f.by < 0 {
		for k := range f.N {
			unsteady += fixed.Abs(int64(o.learned[f.trend+k])) * o.elapsed >> 4
			if f.turn == 0 {
				speed += fixed.Abs(int64(o.was[f.at+k])) * 16
			}
		}
		return speed, unsteady
	}
	at := w.plan.fields[f.by].at
	for k := range f.N {
		was, is := int64(o.was[at+k]), int64(o.now[at+k])
		speed += fixed.Abs(is*f.per) * o.elapsed >> 12
		unsteady += fixed.Abs((is-was)*f.per) * o.elapsed >> 12
	}
	return speed, unsteady
}
