package perplayerstate

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// missedTerm is the input of a scale for the error of the previous components.
const missedTerm = 8

// codeMotion codes a field of numbers or angles, predicted from the baseline and velocities.
func (pc *payloadCodec) codeMotion(i int, o *objectContext, cur, base []int32) {
	s, f := pc.out.state, &pc.plan.fields[i]
	m, signs := &s.fields[i], motionSigns
	if f.by >= 0 {
		signs = velocitySigns
	}
	speed, unsteady := pc.speeds(f, o)
	y := pc.scaleTerms(i, o, fixed.Log2(unsteady), fixed.Log2(speed))
	here := pc.neighbors.miss(o.here, i)
	missed := int64(0)
	for k := range cur {
		x := pc.motionTerms(i, o, k)
		from := int64(base[k]) * 16
		guess := f.clampPrediction(from + m.guess[k].Predict(&x))
		y[missedTerm] = fixed.Log2(missed)
		scale := m.scale[k].Predict(&y)
		v := (guess + 8) >> 4
		d := pc.Int(&s.numbers, rangecoder.Level(scale), signs+rangecoder.Sign3(x[0])*3+rangecoder.Sign3(x[1]), f.wrapDifference(int64(cur[k])-v))
		cur[k] = pc.addDifference(f, v, d)

		e := (v+d)*16 - guess
		m.guess[k].Learn(&x, e, 32+unsteady/4+speed/16+fixed.Abs(e))
		m.scale[k].Adapt(&y, fixed.Log2(e)-scale)
		if f.trend >= 0 {
			o.to.learned()[f.trend+k] = int32(fixed.Clamp(f.wrapDifference(int64(cur[k])-int64(base[k]))*256/o.elapsed, -1<<30, 1<<30))
		}
		here[k] = e
		missed += fixed.Abs(e)
	}
	pc.setError(i, o, missed)
}

// clampPrediction limits a prediction, Q4, to the bounds of the field.
func (f *field) clampPrediction(v int64) int64 {
	if f.turn > 0 {
		return int64(f.Lo)*16 + fixed.Mod(v-int64(f.Lo)*16, f.turn*16)
	}
	return fixed.Clamp(v, int64(f.Lo)*16, int64(f.Hi)*16)
}

// wrapDifference returns a difference, that of angles wrapped to half a turn.
func (f *field) wrapDifference(d int64) int64 {
	if f.turn > 0 {
		return fixed.Wrap(d, f.turn)
	}
	return d
}

func (pc *payloadCodec) addDifference(f *field, v, d int64) int32 {
	if f.turn > 0 {
		pc.Bad = pc.Bad || fixed.Wrap(d, f.turn) != d
		return int32(int64(f.Lo) + fixed.Mod(v+d-int64(f.Lo), f.turn))
	}
	return pc.Check(v+d, f.Lo, f.Hi)
}

// scaleTerms returns the inputs of the predicted scale of an error.
func (pc *payloadCodec) scaleTerms(i int, o *objectContext, unsteady, speed int64) (y [lms.Terms]int64) {
	y = [lms.Terms]int64{lms.Bias, fixed.Log2(o.elapsed * 16), unsteady, speed, int64(o.learned[pc.plan.trends+i])}
	if o.near >= 0 {
		y[5] = *pc.neighbors.missed(o.near, i)
	}
	if by := pc.plan.fields[i].by; by >= 0 {
		y[6] = *pc.neighbors.missed(o.here, by)
	}
	return y
}

func (pc *payloadCodec) setError(i int, o *objectContext, by int64) {
	v := fixed.Log2(by)
	*pc.neighbors.missed(o.here, i), o.to.learned()[pc.plan.trends+i] = v, int32(v)
}

// motionTerms returns the inputs of the prediction of component k, Q4: with a velocity, its values
// in the baseline and now, its change per tick and its error; otherwise the trend and the value;
// then the time and the error of the nearest object.
func (pc *payloadCodec) motionTerms(i int, o *objectContext, k int) (x [lms.Terms]int64) {
	f := &pc.plan.fields[i]
	e := o.elapsed
	if f.by >= 0 {
		at := pc.plan.fields[f.by].at + k
		was, is := int64(o.was[at]), int64(o.now[at])
		x[0], x[1], x[2] = clampTerm(was*f.per*e>>12), clampTerm(is*f.per*e>>12), clampTerm((is-was)*f.per>>12)
		x[3] = clampTerm(pc.neighbors.miss(o.here, f.by)[k] * f.per * e >> 16)
	} else {
		x[1] = clampTerm(int64(o.learned[f.trend+k]) * e >> 4)
		if f.turn == 0 {
			x[3] = clampTerm(int64(o.was[f.at+k]) * e / 8)
		}
	}
	x[4] = e * 16
	if o.near >= 0 {
		x[5] = clampTerm(pc.neighbors.miss(o.near, i)[k])
	}
	return x
}

func clampTerm(v int64) int64 { return fixed.Clamp(v, -1<<40, 1<<40) }

// speeds returns the change of a field over the elapsed time and the change of its velocity, Q4.
func (pc *payloadCodec) speeds(f *field, o *objectContext) (speed, unsteady int64) {
	if f.by < 0 {
		for k := range f.N {
			unsteady += fixed.Abs(int64(o.learned[f.trend+k])) * o.elapsed >> 4
			if f.turn == 0 {
				speed += fixed.Abs(int64(o.was[f.at+k])) * 16
			}
		}
		return speed, unsteady
	}
	at := pc.plan.fields[f.by].at
	for k := range f.N {
		was, is := int64(o.was[at+k]), int64(o.now[at+k])
		speed += fixed.Abs(is*f.per) * o.elapsed >> 12
		unsteady += fixed.Abs((is-was)*f.per) * o.elapsed >> 12
	}
	return speed, unsteady
}

const (
	// maxNeighbors is the number of previously coded objects among which the nearest is searched.
	maxNeighbors = 32
	// capacity is the number of objects to keep: a power of two, above maxNeighbors.
	capacity = 64
)

// neighborContext is the context that the last coded objects leave for the following ones.
type neighborContext struct {
	n        int // objects so far
	position [capacity][3]int64
	fields   int
	misses   [][3]int64 // prediction errors by object and field: Q4, or Q16 radians
	sums     []int64    // log2 of the sums of misses
}

func (a *neighborContext) init(fields int) {
	a.fields, a.misses, a.sums = fields, make([][3]int64, capacity*fields), make([]int64, capacity*fields)
}

func (a *neighborContext) miss(object, field int) *[3]int64 { return &a.misses[object*a.fields+field] }

// missed returns log2 of the sum of the errors.
func (a *neighborContext) missed(object, field int) *int64 { return &a.sums[object*a.fields+field] }

// open starts an object. It returns its index, and that of the nearest previous object, or -1.
func (a *neighborContext) open(position [3]int64) (here, near int) {
	here, near = a.n%capacity, -1
	smallest := int64(-1)
	for i := max(0, a.n-maxNeighbors); i < a.n; i++ {
		p := &a.position[i%capacity]
		d := fixed.Abs(p[0]-position[0]) + fixed.Abs(p[1]-position[1]) + fixed.Abs(p[2]-position[2])
		if smallest < 0 || d < smallest {
			smallest, near = d, i%capacity
		}
	}
	a.position[here] = position
	clear(a.misses[here*a.fields : (here+1)*a.fields])
	clear(a.sums[here*a.fields : (here+1)*a.fields])
	return here, near
}

// perShift converts from perBits to Q16.
const perShift = perBits - quat.Shift

// codeQuat codes an orientation, predicted from the baseline and its angular velocity.
func (pc *payloadCodec) codeQuat(i int, o *objectContext, cur, base []int32) {
	s, f := pc.out.state, &pc.plan.fields[i]
	m := &s.fields[i]
	gr := &f.grain
	var q0, by, q, now quat.Fixed
	gr.Unpack(&q0, base)
	var x [3][lms.Terms]int64
	var guess [3]int64
	var speed, unsteady int64
	for k := range x {
		x[k] = pc.turnTerms(f, i, o, k)
		guess[k] = fixed.Clamp(m.guess[k].Predict(&x[k]), -64*quat.One, 64*quat.One)
		speed += fixed.Abs(x[k][1])
		unsteady += fixed.Abs(x[k][1] - x[k][0])
	}
	by.ExpAny(guess)
	q.Mul(&by, &q0)

	y := pc.scaleTerms(i, o, gr.Size(unsteady), gr.Size(speed))
	largest, other := s.largest.Code(&pc.Coder, int(cur[0]), &q, gr, int(fixed.Clamp((y[2]+y[4])>>9, 0, quat.Doubts-1)))
	cur[0] = int32(largest)
	if other {
		y[7] = lms.Bias
	}
	if q[largest] < 0 {
		q = quat.Fixed{-q[0], -q[1], -q[2], -q[3]}
	}
	missed := int64(0)
	for i, k := 0, 0; i < 4; i++ {
		if i == largest {
			continue
		}
		to := gr.Pack(q[i])
		p := fixed.Clamp(to, int64(f.Lo)*16, int64(f.Hi)*16)
		y[missedTerm] = fixed.Log2(missed)
		scale := m.scale[k].Predict(&y)
		sign := turnSigns + rangecoder.Sign3(to-gr.Pack(q0[i]))
		e := pc.Predicted(&s.numbers, rangecoder.Level(scale), sign, p, &cur[k+1], f.Lo, f.Hi)
		m.scale[k].Adapt(&y, fixed.Log2(e)-scale)
		missed += fixed.Abs(e)
		k++
	}
	gr.Unpack(&now, cur)
	var off [3]int64
	off[0], off[1], off[2] = quat.Between(&q, &now)
	for k := range x {
		m.guess[k].Learn(&x[k], off[k], 32*gr.Unit+unsteady/4+speed/16+fixed.Abs(off[k]))
	}
	*pc.neighbors.miss(o.here, i) = off
	pc.setError(i, o, missed)
}

// turnTerms returns the inputs of the predicted rotation about axis k, Q16: the angular velocity in
// the baseline and now, its change per tick and its error, and the error of the nearest object.
func (pc *payloadCodec) turnTerms(f *field, i int, o *objectContext, k int) (x [lms.Terms]int64) {
	if f.by >= 0 {
		v := &pc.plan.fields[f.by]
		was, is := int64(o.was[v.at+k]), int64(o.now[v.at+k])
		x[0], x[1], x[2] = clampAngle(was*f.per*o.elapsed>>perShift), clampAngle(is*f.per*o.elapsed>>perShift), clampAngle((is-was)*f.per>>perShift)
		x[3] = clampAngle(pc.neighbors.miss(o.here, f.by)[k] * f.per * o.elapsed >> (perShift + 4))
	}
	if o.near >= 0 {
		x[4] = pc.neighbors.miss(o.near, i)[k]
	}
	return x
}

func clampAngle(v int64) int64 { return fixed.Clamp(v, -64*quat.One, 64*quat.One) }
