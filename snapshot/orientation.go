package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// What the scale of an orientation's misses is predicted from: logarithms, but for turnBias, turnRested and turnOther, which
// are lms.Bias where they hold.
const (
	turnJerk        = iota // of the place, over the references
	turnJerk1              // over the newest ones
	turnUnsteady           // how much the angular velocity changed over the references
	turnSpeed              // angular
	turnMissed             // by the components before
	turnNear               // what the nearest object's orientation was missed by
	turnLast               // what this one was missed by last
	turnBias               // always
	turnRested             // the object was at rest
	turnOther              // the largest element is another than was predicted
	turnPlaceSpeed         // of the place
	turnPlaceMissed        // by the place, where it comes first
	turnTurnJerk           // of the orientation, over the references
	turnTurnJerk1          // and over the newest ones
	turnFar                // how far this component was predicted to go
)

// codeQuat codes field number field, the orientation number n, into cur, and gives what its prediction missed by, Q4.
func (w *walk) codeQuat(field, n int, cur []int32) int64 {
	o, f, at := &w.object, &w.schema.fields[field], w.schema.at[field]
	m, gr := &w.state.quat[n], &w.schema.grains[n]
	base := gr.Unpack(o.base[at : at+4])
	var v [refs][3]int64
	for _, i := range [...]int{0, 1, 2, refs - 1} {
		if o.lag[i] == 0 {
			continue
		}
		q := gr.Unpack(o.row[i][at : at+4])
		v[i] = quat.Between(&q, &base)
		by := w.hist.distance * parts[o.lag[i]&15]
		for k := range v[i] {
			v[i][k] = v[i][k] * by >> partShift
		}
	}
	class, unit, ground := o.class, int64(128), 0
	if axis := o.pose.ground; axis >= 0 {
		ground, class, unit = 1, classes+class, quat.One*16/(int64(w.state.motion[0].size[axis].half)+1)
	}
	var x [3][lms.Terms]int64
	var guess [3]int64
	var dis, ang, jerk, jerk1 int64
	for k := range x {
		g := v[2][k]
		x[k] = [lms.Terms]int64{g, v[0][k] - g, v[1][k] - g, g - v[refs-1][k]}
		for i := range o.drift {
			x[k][4+i], x[k][7+i] = o.drift[i]*unit>>4, o.veer[i]*unit>>4
		}
		guess[k] = m.turn[k][class].Predict(&x[k])
		dis += fixed.Abs(v[1][k] - v[refs-1][k])
		ang += fixed.Abs(v[1][k])
		jerk += fixed.Abs(x[k][3])
		jerk1 += fixed.Abs(x[k][1])
	}
	by := quat.Exp(guess)
	q := by.Mul(&base)

	last := &w.state.last[field*len(w.hist.base.objects)+o.index]
	y := [lms.Terms]int64{
		turnJerk: fixed.Log2(o.jerk), turnJerk1: fixed.Log2(o.jerk1), turnUnsteady: gr.Size(dis), turnSpeed: gr.Size(ang),
		turnLast: int64(*last), turnBias: lms.Bias, turnPlaceSpeed: fixed.Log2(o.speed), turnPlaceMissed: fixed.Log2(o.missed),
		turnTurnJerk: gr.Size(jerk), turnTurnJerk1: gr.Size(jerk1),
	}
	if o.near != nil {
		y[turnNear] = fixed.Log2(o.near.turn)
	}
	if o.moved == 0 {
		y[turnRested] = lms.Bias
	}

	largest, hit := m.largest.Code(&w.Coder, int(cur[0]), &q, gr, int(fixed.Clamp((y[turnUnsteady]+y[turnPlaceMissed])>>9, 0, quat.Doubts-1)))
	w.store(&cur[0], int32(largest))
	if hit {
		y[turnOther] = lms.Bias
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
		p, far := fixed.Clamp(to, int64(f.Lo)*16, int64(f.Hi)*16), to-gr.Pack(base[i])
		y[turnMissed], y[turnFar] = fixed.Log2(missed), fixed.Log2(far)
		scale := m.scale[k][ground].Predict(&y)
		c := (p + 8) >> 4
		c += w.Int(&m.numbers, rangecoder.Level(scale), k*9+rangecoder.Sign3(far), int64(cur[k+1])-c)
		w.store(&cur[k+1], w.bounded(c, f.Lo, f.Hi))
		e := int64(cur[k+1])*16 - p
		m.scale[k][ground].Adapt(&y, fixed.Log2(e)-scale)
		missed += fixed.Abs(e)
		k++
	}
	now := gr.Unpack(cur)
	target := quat.Between(&base, &now)
	if field == w.schema.lie {
		o.pose.now, o.pose.turn, o.turned = matrixOf(&now), target, missed
	}
	for k := range x {
		e := target[k] - guess[k]
		m.turn[k][class].Learn(&x[k], e, (64+o.jerk/4+o.jerk1/8+o.speed/64)*gr.Unit/16+fixed.Abs(e))
	}
	*last = int16(fixed.Log2(missed))
	return missed
}
