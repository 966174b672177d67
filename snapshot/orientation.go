package snapshot

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
	turnDistance           // distance to the baseline
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
	m, probs, gr := &pc.model.turns[n], pc.schema.layout.turns[n], &pc.schema.grains[n]
	base := &o.pose.from
	if field != pc.schema.orientation {
		base = new(quat.Fixed)
		gr.Unpack(base, o.base[at:at+4])
	}
	var v [refs][3]int64
	for i := range v {
		if o.lag[i] == 0 {
			continue
		}
		var q quat.Fixed
		gr.Unpack(&q, o.row[i][at:at+4])
		x, y, z := quat.Between(&q, base)
		by := pc.refs.distance * parts[o.lag[i]&63]
		v[i][0], v[i][1], v[i][2] = x*by>>partShift, y*by>>partShift, z*by>>partShift
	}
	class, unit := o.class, int64(128)
	if axis := o.pose.ground; axis >= 0 {
		class, unit = classes+class, quat.One*16/(pc.physics.size[axis].half+1)
	}
	var x [3][lms.Terms]int64
	var guess [3]int64
	var dis, ang, jerk, jerk1 int64
	for k := range x {
		g := v[2][k]
		x[k][0], x[k][1], x[k][2], x[k][3] = g, v[0][k]-g, v[1][k]-g, g-v[refs-1][k]
		for i := range o.drift {
			x[k][4+i], x[k][7+i] = o.drift[i]*unit>>4, o.velocityChange[i]*unit>>4
		}
		guess[k] = m.turn[k][class].Predict(&x[k])
		dis += fixed.Abs(v[1][k] - v[refs-1][k])
		ang += fixed.Abs(v[1][k])
		jerk += fixed.Abs(x[k][3])
		jerk1 += fixed.Abs(x[k][1])
	}
	var by, q, now quat.Fixed
	by.Exp(guess[0], guess[1], guess[2])
	q.Mul(&by, base)

	y := [lms.Terms]int64{
		turnJerk: o.logJerk, turnJerk1: o.logJerk1, turnUnsteady: gr.Size(dis), turnSpeed: gr.Size(ang),
		turnDistance: pc.refs.scale(), turnBias: lms.Bias, turnPlaceSpeed: o.logSpeed, turnPlaceMissed: fixed.Log2(o.missed),
		turnTurnJerk: gr.Size(jerk), turnTurnJerk1: gr.Size(jerk1),
	}
	if o.near != nil {
		y[turnNear] = fixed.Log2(o.near.turn)
	}
	if o.moved == 0 {
		y[turnRested] = lms.Bias
	}

	largest, hit := pc.codeLargest(probs, int(cur[0]), &q, gr, int(fixed.Clamp((y[turnUnsteady]+y[turnPlaceMissed])>>9, 0, quatDoubts-1)))
	pc.Store(&cur[0], int32(largest))
	if hit {
		y[turnOther] = lms.Bias
	}
	if q[largest] < 0 {
		q[0], q[1], q[2], q[3] = -q[0], -q[1], -q[2], -q[3]
	}
	missed, scales := int64(0), int64(0)
	for i, k := 0, 0; i < 4; i++ {
		if i == largest {
			continue
		}
		to := gr.Pack(q[i])
		p, far := fixed.Clamp(to, int64(f.Lo)*16, int64(f.Hi)*16), to-gr.Pack(base[i])
		y[turnMissed], y[turnFar] = fixed.Log2(missed), fixed.Log2(far)
		scale := m.scale[k][class].Predict(&y)
		e := pc.predicted(probs+largestSize+class/classes*integerSize, level(scale), k*9+rangecoder.Sign3(far), p, &cur[k+1], f.Lo, f.Hi)
		if pc.lesson != nil {
			pc.lesson.fitScale(&m.scale[k][class], y, fixed.Log2(e)-scale)
			scales += scale
		}
		missed += fixed.Abs(e)
		k++
	}
	gr.Unpack(&now, cur)
	var target [3]int64
	target[0], target[1], target[2] = quat.Between(base, &now)
	if field == pc.schema.orientation {
		o.pose.now.Set(&now)
		o.pose.turn, o.turned = target, missed
	}
	if pc.lesson != nil {
		for k := range x {
			pc.lesson.fit(&m.turn[k][class], x[k], target[k]-guess[k], scales/3, gr.Unit)
		}
	}
	return missed
}

// codeAngle codes a field of angles into cur. The prediction of each is the baseline or constant
// angular velocity, whichever would have predicted the baseline better.
func (pc *payloadCodec) codeAngle(field int, m int, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	lo := int64(f.Lo)
	turn := int64(f.Hi) - lo + 1
	change := func(to, from int32, lag int64) int64 { // scaled to the coded distance
		if lag <= 0 {
			return 0
		}
		return fixed.Wrap(int64(to)-int64(from), turn) * pc.refs.distance / lag
	}
	for k := range cur {
		base := o.base[at+k]
		now := change(base, o.row[1][at+k], o.lag[1])
		before := change(o.row[1][at+k], o.row[2][at+k], o.lag[2]-o.lag[1])
		guess, miss := int64(base), fixed.Abs(now)
		if on := fixed.Abs(now - before); on < miss {
			guess, miss = guess+now, on
		}
		level, sign := level(fixed.Log2(miss*16)), k*9+3*rangecoder.Sign3(now)+rangecoder.Sign3(before)
		d := pc.integer(m, level, sign, fixed.Wrap(int64(cur[k])-guess, turn))
		pc.Bad = pc.Bad || d != fixed.Wrap(d, turn)
		pc.Store(&cur[k], int32(lo+fixed.Mod(guess+d-lo, turn)))
	}
}

// The contexts of the index of the largest component.
const (
	largestLevels = 40 // of the margin by which the predicted one is the largest
	quatDoubts    = 8  // of the uncertainty of the prediction
)

// codeLargest codes the index of the largest element, 0 to 3, of an orientation that is predicted
// to be q, and reports whether it differs from that of q.
func (pc *payloadCodec) codeLargest(at, index int, q *quat.Fixed, g *quat.Quantizer, doubt int) (largest int, other bool) {
	first, second, margin := q.Largest(g)
	if !pc.bit(at+int(fixed.Clamp((margin+256)*2>>8, 0, largestLevels-1))*quatDoubts+doubt, index != first) {
		return first, false
	}
	at += largestLevels * quatDoubts
	if !pc.bit(at, index != second) {
		return second, true
	}
	low, high := quat.Others(first, second)
	if pc.bit(at+1, index == high) {
		return high, true
	}
	return low, true
}
