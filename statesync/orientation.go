package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// perShift converts the angle that a quaternion turns in a tick, per step of its angular velocity,
// to Q16.
const perShift = perBits - quat.Shift

// codeQuat codes an orientation, predicted from the baseline and its angular velocity.
func (pc *payloadCodec) codeQuat(i int, o *objectContext, cur, base []int32) {
	s, f := pc.out.state, &pc.plan.fields[i]
	m := &s.fields[i]
	gr := &f.grain
	q0 := gr.Unpack(base)
	var x [3][lms.Terms]int64
	var guess [3]int64
	var speed, unsteady int64
	for k := range x {
		x[k] = pc.turnTerms(f, i, o, k)
		guess[k] = fixed.Clamp(m.guess[k].Predict(&x[k]), -64*quat.One, 64*quat.One)
		speed += fixed.Abs(x[k][1])
		unsteady += fixed.Abs(x[k][1] - x[k][0])
	}
	by := quat.ExpAny(guess)
	q := by.Mul(&q0)

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
	now := gr.Unpack(cur)
	off := quat.Between(&q, &now)
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
