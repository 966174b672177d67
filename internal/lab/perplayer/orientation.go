package perplayer

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Inputs of the predicted scale of an orientation's error. They are logarithms, except for
// turnBias, turnRested and turnOther, which are lms.Bias or 0.
const (
	turnJerk        = iota // change of the position's velocity over all references
	turnJerk1              // over the newest references
	turnUnsteady           // range of the angular velocities over the references
	turnSpeed              // angular
	turnMissed             // error of the previous components
	turnNear               // error of the neighbor's orientation
	turnLast               // previous error of this orientation
	turnBias               // always
	turnRested             // the object was at rest
	turnOther              // the largest component differs from the predicted one
	turnPlaceSpeed         // speed of the position
	turnPlaceMissed        // error of the position, if it is coded first
	turnTurnJerk           // change of angular velocity over all references
	turnTurnJerk1          // over the newest references
	turnFar                // predicted change of this component
)

// codeQuat codes a field, quaternion number n, and returns the error of its prediction in Q4.
func (pc *payloadCodec) codeQuat(field, n int, cur []int32) int64 {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	m, gr := &pc.state.quat[n], &pc.schema.grains[n]
	var base quat.Fixed
	gr.Unpack(&base, o.base[at:at+4])
	var v [refs][3]int64
	for _, i := range [...]int{0, 1, 2, refs - 1} {
		if o.lag[i] == 0 {
			continue
		}
		var q quat.Fixed
		gr.Unpack(&q, o.row[i][at:at+4])
		v[i][0], v[i][1], v[i][2] = quat.Between(&q, &base)
		by := pc.refs.distance * parts[o.lag[i]&15]
		for k := range v[i] {
			v[i][k] = v[i][k] * by >> partShift
		}
	}
	class, unit, ground := o.class, int64(128), 0
	if axis := o.pose.ground; axis >= 0 {
		ground, class, unit = 1, classes+class, quat.One*16/(int64(pc.state.motion[0].size[axis].half)+1)
	}
	var x [3][lms.Terms]int64
	var guess [3]int64
	var dis, ang, jerk, jerk1 int64
	for k := range x {
		g := v[2][k]
		x[k] = [lms.Terms]int64{g, v[0][k] - g, v[1][k] - g, g - v[refs-1][k]}
		for i := range o.drift {
			x[k][4+i], x[k][7+i] = o.drift[i]*unit>>4, o.velocityChange[i]*unit>>4
		}
		guess[k] = m.turn[k][class].Predict(&x[k])
		dis += fixed.Abs(v[1][k] - v[refs-1][k])
		ang += fixed.Abs(v[1][k])
		jerk += fixed.Abs(x[k][3])
		jerk1 += fixed.Abs(x[k][1])
	}
	var by, q quat.Fixed
	by.Exp(guess[0], guess[1], guess[2])
	q.Mul(&by, &base)

	last := &pc.state.last[field*len(pc.refs.base.objects)+o.index]
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

	largest, hit := m.largest.Code(&pc.Coder, int(cur[0]), &q, gr, int(fixed.Clamp((y[turnUnsteady]+y[turnPlaceMissed])>>9, 0, quat.Doubts-1)))
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
		e := pc.Predicted(&m.numbers, rangecoder.Level(scale), k*9+rangecoder.Sign3(far), p, &cur[k+1], f.Lo, f.Hi)
		m.scale[k][ground].Adapt(&y, fixed.Log2(e)-scale)
		missed += fixed.Abs(e)
		k++
	}
	var now quat.Fixed
	gr.Unpack(&now, cur)
	var target [3]int64
	target[0], target[1], target[2] = quat.Between(&base, &now)
	if field == pc.schema.orientation {
		o.pose.now.Set(&now)
		o.pose.turn, o.turned = target, missed
	}
	for k := range x {
		e := target[k] - guess[k]
		m.turn[k][class].Learn(&x[k], e, (64+o.jerk/4+o.jerk1/8+o.speed/64)*gr.Unit/16+fixed.Abs(e))
	}
	*last = int16(fixed.Log2(missed))
	return missed
}
