package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// positionTerms are the inputs of the prediction of one component of a position.
type positionTerms struct {
	x      [lms.Terms]int64
	by     *lms.Weights
	g      int64 // velocity
	out    int64 // depth below the ground of the extrapolated position
	rested bool  // the object was at rest
}

// Inputs of the predicted scale of a position's error. They are logarithms, except for posBias,
// posRested and posAlone, which are lms.Bias or 0.
const (
	posJerk     = iota // change of velocity over all references
	posJerk1           // over the newest references
	posUnsteady        // range of the velocities over the references
	posSpeed
	posMissed   // error of the previous components
	posTurned   // error of the orientation
	posDistance // distance to the baseline
	posBias     // always
	posRested   // the object was at rest
	posAlone    // there is no neighbor
	posGap      // distance to the neighbor
	posFar      // predicted change of this component
	posOut      // depth below the ground
	posNear     // error of the neighbor's position
	posForced   // maximum of posTurned and posOut
	posTurned2  // square of posTurned: small errors carry no information
)

// codePosition codes a field, numbers n, into cur.
func (pc *payloadCodec) codePosition(field, n int, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	m := &pc.model.motion[n]
	anchor, ground := field == pc.schema.anchor, o.class
	if !anchor {
		pc.measureMotion(at, f.N)
	} else if o.pose.ground >= 0 {
		ground += classes
	}
	acc := int64(0)
	for k := range f.N {
		acc += fixed.Abs(o.speeds[k][fromSecond] - o.speeds[k][fromLast])
	}
	turned := fixed.Log2(o.turned)
	y := [lms.Terms]int64{
		posJerk: o.logJerk, posJerk1: o.logJerk1, posUnsteady: fixed.Log2(acc), posSpeed: o.logSpeed,
		posTurned: turned, posTurned2: turned * turned >> 11, posDistance: pc.refs.scale(), posBias: lms.Bias,
	}
	if o.near != nil {
		y[posNear], y[posGap] = fixed.Log2(o.near.positionError), o.gap
	} else {
		y[posAlone] = lms.Bias
	}
	probs := pc.schema.layout.numbers[n]
	var t positionTerms
	var miss [3]int64
	missed := int64(0)
	for k := range f.N {
		base := int64(o.base[at+k]) * 16
		pc.positionTerms(&t, m, k, base, anchor)
		copy(t.x[7:], miss[:k])
		guess := fixed.Clamp(base+t.by.Predict(&t.x), int64(f.Lo)*16, int64(f.Hi)*16)

		y[posMissed], y[posRested], y[posFar], y[posOut] = fixed.Log2(missed), 0, fixed.Log2(t.g), fixed.Log2(t.out)
		if t.rested {
			y[posRested] = lms.Bias
		}
		y[posForced] = max(turned, y[posOut])
		scale := m.scale[k][ground].Predict(&y)
		magnitude := level(scale)
		sign := k*9 + 3*rangecoder.Sign3(t.x[1]) + rangecoder.Sign3(t.g)
		if anchor {
			sign += 27 * pc.low(guess-pc.lowest[k], scale)
		}
		e := pc.predicted(probs+(k>>1|ground/classes<<1)*integerSize, magnitude, sign, guess, &cur[k], f.Lo, f.Hi)
		if pc.lesson != nil {
			pc.lesson.fit(t.by, t.x, e, scale, 16)
			pc.lesson.fitScale(&m.scale[k][ground], y, fixed.Log2(e)-scale)
		}
		miss[k] = e
		missed += fixed.Abs(e)
	}
	if anchor {
		o.miss, o.missed = miss, missed
	}
}

// positionTerms sets the inputs for component k. base is its value in the baseline, Q4.
func (pc *payloadCodec) positionTerms(t *positionTerms, m *motionWeights, k int, base int64, anchor bool) {
	o := &pc.object
	v := &o.speeds[k]
	g := v[fromThird]
	t.g, t.out, t.rested, t.by = g, 0, o.class == 3, &m.position[k][o.class]
	t.x = [lms.Terms]int64{}
	t.x[0], t.x[1], t.x[2], t.x[3], t.x[4] = g, v[fromFirst]-g, v[firstFromSecond]-g, g-v[thirdFromLast], 160
	if o.near != nil {
		t.x[5] = o.near.miss[k]
	}
	if !anchor {
		return
	}
	if t.out = max(0, pc.lowest[k]-base-g); o.pose.known {
		t.out = max(0, -pc.physics.size[k].above(&o.pose.now, k, base+g))
	}
	t.x[6] = t.out
	if o.pose.known && o.pose.ground >= 0 {
		pc.rollTerms(m, t, k, base)
	} else if t.out > 0 && !t.rested {
		t.by = &m.position[k][6]
	}
}

// low returns a context for the height above the ground, relative to the expected error.
func (pc *payloadCodec) low(above, scale int64) int {
	reach := int64(16) << fixed.Clamp(scale/fixed.LogOne+1, 0, 20)
	switch {
	case above < reach/4:
		return 2
	case above < reach:
		return 1
	}
	return 0
}

func (pc *payloadCodec) groundAxis(at, n int) int {
	o := &pc.object
	axis, least := -1, int64(0)
	for k := range n {
		s := &pc.physics.size[k]
		h := fixed.Abs(s.above(&o.pose.base, k, int64(o.base[at+k])*16))
		if h < minHalf+s.half>>4 && (axis < 0 || h < least) {
			axis, least = k, h
		}
	}
	return axis
}

// loadOrientations loads the object's rotations in the baseline and before it.
func (pc *payloadCodec) loadOrientations() {
	o, s := &pc.object, pc.schema
	o.pose.known, o.pose.ground, o.turned = s.orientation >= 0, -1, 0
	if !o.pose.known {
		return
	}
	g, at := &s.grains[0], s.at[s.orientation]
	g.Unpack(&o.pose.from, o.base[at:at+4])
	o.pose.base.Set(&o.pose.from)
	o.pose.now, o.pose.turn = o.pose.base, [3]int64{}
	if s.anchor >= 0 {
		o.pose.ground = pc.groundAxis(s.at[s.anchor], s.fields[s.anchor].N)
	}
	if o.pose.ground >= 0 {
		var before quat.Fixed
		g.Unpack(&before, o.row[2][at:at+4])
		o.pose.before.Set(&before)
	}
}

// groundClass is the class of an object on the ground, by its class in flight.
var groundClass = [classes]int{0, 1, 2, 0, 3, 4, 4}

// rollTerms sets the inputs for component k of an object on the ground. Along the ground axis they
// are the changes of its extent, and its height. Across it they are the movements of the object if
// the corner below it stays in place: the current and the next lowest corner, and the previous
// movement.
func (pc *payloadCodec) rollTerms(m *motionWeights, t *positionTerms, k int, base int64) {
	o, axis := &pc.object, pc.object.pose.ground
	p, s, back := &o.pose, &pc.physics.size[axis], int64(0)
	half := s.half
	if o.lag[2] > 0 {
		back = pc.refs.distance / o.lag[2]
	}
	for i := range p.turn {
		t.x[13+i] = p.turn[i] * half >> quat.Shift
	}
	if k == axis {
		e := p.base.Extent(k)
		t.by = &m.roll[0][groundClass[o.class]]
		t.x[10] = half * (p.now.Extent(k) - e) >> quat.Shift
		t.x[11] = half * (e - p.before.Extent(k)) >> quat.Shift * back
		t.x[12] = -s.above(&p.base, k, base)
		return
	}
	was, is := p.base.Corner(axis), p.now.Corner(axis)
	t.by = &m.roll[1+k&1][groundClass[o.class]]
	t.x[10] = -half * p.base.Displacement(&p.now, &was, k) >> quat.Shift
	t.x[11] = -half * p.before.Displacement(&p.base, &was, k) >> quat.Shift * back
	t.x[12] = -half * p.base.Displacement(&p.now, &is, k) >> quat.Shift
}
