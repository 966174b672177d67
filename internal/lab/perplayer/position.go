package perplayer

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// positionTerms are the inputs of the prediction of one component of a position.
type positionTerms struct {
	x      [lms.Terms]int64
	by     *lms.Predictor // predictor
	g      int64          // velocity
	out    int64          // depth below the ground of the extrapolated position
	rested bool           // the object was at rest
}

// Inputs of the predicted scale of a position's error. They are logarithms, except for posBias,
// posRested and posAlone, which are lms.Bias or 0.
const (
	posJerk     = iota // change of velocity over all references
	posJerk1           // over the newest references
	posUnsteady        // range of the velocities over the references
	posSpeed
	posMissed  // error of the previous components
	posTurned  // error of the orientation
	posLast    // previous error of this position
	posBias    // always
	posRested  // the object was at rest
	posAlone   // there is no neighbor
	posGap     // distance to the neighbor
	posFar     // predicted change of this component
	posOut     // depth below the ground
	posNear    // error of the neighbor's position
	posForced  // maximum of posTurned and posOut
	posTurned2 // square of posTurned: small errors carry no information
)

func (pc *payloadCodec) codePosition(field int, m *motionModel, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	anchor, ground := field == pc.schema.anchor, 0
	if !anchor {
		pc.measureMotion(at, f.N)
	} else if o.pose.ground >= 0 {
		ground = 1
	}
	last := &pc.state.last[field*len(pc.refs.base.objects)+o.index]
	acc := int64(0)
	for k := range f.N {
		acc += fixed.Abs(o.speeds[k][fromSecond] - o.speeds[k][fromLast])
	}
	turned := fixed.Log2(o.turned)
	y := [lms.Terms]int64{
		posJerk: fixed.Log2(o.jerk), posJerk1: fixed.Log2(o.jerk1), posUnsteady: fixed.Log2(acc), posSpeed: fixed.Log2(o.speed),
		posTurned: turned, posTurned2: turned * turned >> 11, posLast: int64(*last), posBias: lms.Bias,
	}
	if o.near != nil {
		y[posNear], y[posGap] = fixed.Log2(o.near.positionError), o.gap
	} else {
		y[posAlone] = lms.Bias
	}
	unsteady := 64 + o.jerk + o.jerk1/2 + o.speed/16
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
		level := rangecoder.Level(scale)
		sign := k*9 + 3*rangecoder.Sign3(t.x[1]) + rangecoder.Sign3(t.g)
		if anchor {
			sign += 27 * pc.low(guess-pc.refs.low[k]*16, scale)
		}
		e := pc.Predicted(&m.numbers, level, sign, guess, &cur[k], f.Lo, f.Hi)
		t.by.Learn(&t.x, e, unsteady+fixed.Abs(e))
		m.scale[k][ground].Adapt(&y, fixed.Log2(e)-scale)
		if anchor && o.pose.known {
			s := &m.size[k]
			s.learn(s.above(&o.pose.base, k, base), int64(cur[k])*16-base, o.pose.now.Extent(k)-o.pose.base.Extent(k))
		}
		miss[k] = e
		missed += fixed.Abs(e)
	}
	*last = int16(fixed.Log2(missed))
	if anchor {
		o.miss, o.missed = miss, missed
	}
}

// positionTerms sets the inputs for component k. base is its value in the baseline, Q4.
func (pc *payloadCodec) positionTerms(t *positionTerms, m *motionModel, k int, base int64, anchor bool) {
	o := &pc.object
	v := &o.speeds[k]
	g := v[fromThird]
	t.g, t.out, t.rested, t.by = g, 0, o.class == 3, &m.position[k][o.class]
	t.x = [lms.Terms]int64{g, v[fromFirst] - g, v[firstFromSecond] - g, g - v[thirdFromLast], 160}
	if o.near != nil {
		t.x[5] = o.near.miss[k]
	}
	if !anchor {
		return
	}
	if t.out = max(0, pc.refs.low[k]*16-base-g); o.pose.known {
		t.out = max(0, -m.size[k].above(&o.pose.now, k, base+g))
	}
	t.x[6] = t.out
	if o.pose.known && o.pose.ground >= 0 {
		pc.rollTerms(m, t, k, base)
	} else if t.out > 0 && !t.rested {
		t.by = &m.position[k][6]
	}
}

// low returns a context for the distance above the lowest object, relative to the expected error.
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

// learn updates the estimates by an object at height above the ground, whose position and extent
// changed by place and extent. The estimates are quantiles, so outliers do not matter: an eighth of
// the objects lie below the ground.
func (s *size) learn(above, position, extent int64) {
	step := s.half>>8 + 1
	if above < 0 {
		step *= -7
	}
	s.floor += int64(step)
	near := fixed.Abs(above) < minHalf+int64(s.half)>>3
	if s.count > trustedCount && !near || fixed.Abs(extent) < minExtentChange {
		return
	}
	step = s.half/(4+s.count/4) + 1
	if (position-int64(s.half)*extent>>quat.Shift > 0) != (extent > 0) {
		step = -step
	}
	s.half = min(max(s.half+step, minHalf), maxHalf)
	s.count = min(s.count+1, maxCount)
}

// above returns the height of the lowest corner above the ground along axis k at position at, Q4.
func (s *size) above(m *quat.Matrix, k int, at int64) int64 {
	return at - s.floor - int64(s.half)*(m.Extent(k)-quat.One)>>quat.Shift
}

// initGround sets the ground to the lowest object if there was no observation yet.
func (pc *payloadCodec) initGround() {
	if pc.schema.anchor < 0 || pc.schema.orientation < 0 {
		return
	}
	for k := range pc.state.motion[0].size {
		if s := &pc.state.motion[0].size[k]; s.count == 0 {
			s.floor = pc.refs.low[k] * 16
		}
	}
}

func (pc *payloadCodec) groundAxis(m *motionModel, at, n int) int {
	o := &pc.object
	axis, least := -1, int64(0)
	for k := range n {
		s := &m.size[k]
		h := fixed.Abs(s.above(&o.pose.base, k, int64(o.base[at+k])*16))
		if h < minHalf+int64(s.half)>>4 && (axis < 0 || h < least) {
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
	var base quat.Fixed
	g.Unpack(&base, o.base[at:at+4])
	o.pose.base.Set(&base)
	o.pose.now, o.pose.turn = o.pose.base, [3]int64{}
	if s.anchor >= 0 {
		o.pose.ground = pc.groundAxis(&pc.state.motion[0], s.at[s.anchor], s.fields[s.anchor].N)
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
func (pc *payloadCodec) rollTerms(m *motionModel, t *positionTerms, k int, base int64) {
	o, axis := &pc.object, pc.object.pose.ground
	p, s, back := &o.pose, &m.size[axis], int64(0)
	half := int64(s.half)
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
