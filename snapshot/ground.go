package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

func matrixOf(q *quat.Fixed) matrix {
	x, y, z, w := q[0], q[1], q[2], q[3]
	const one, s = quat.One, quat.Shift - 1
	return matrix{
		{one - (y*y+z*z)>>s, (x*y - z*w) >> s, (x*z + y*w) >> s},
		{(x*y + z*w) >> s, one - (x*x+z*z)>>s, (y*z - x*w) >> s},
		{(x*z - y*w) >> s, (y*z + x*w) >> s, one - (x*x+y*y)>>s},
	}
}

// extent returns the extent of a cube of half size 1 along axis k, Q16.
func (m *matrix) extent(k int) int64 {
	return fixed.Abs(m[k][0]) + fixed.Abs(m[k][1]) + fixed.Abs(m[k][2])
}

// corner returns the lowest corner along an axis, as the signs of its coordinates.
func (m *matrix) corner(axis int) (c [3]int64) {
	for i, v := range m[axis] {
		c[i] = 1
		if v > 0 {
			c[i] = -1
		}
	}
	return c
}

// moves returns the movement of a corner along axis k from rotation m to o, Q16.
func (m *matrix) moves(o *matrix, c *[3]int64, k int) (sum int64) {
	for i := range c {
		sum += (o[k][i] - m[k][i]) * c[i]
	}
	return sum
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
func (s *size) above(m *matrix, k int, at int64) int64 {
	return at - s.floor - int64(s.half)*(m.extent(k)-quat.One)>>quat.Shift
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

// groundAxis returns the axis along which the loaded object lies on the ground, or -1.
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
	base := g.Unpack(o.base[at : at+4])
	o.pose.base = matrixOf(&base)
	o.pose.now, o.pose.turn = o.pose.base, [3]int64{}
	if s.anchor >= 0 {
		o.pose.ground = pc.groundAxis(&pc.state.motion[0], s.at[s.anchor], s.fields[s.anchor].N)
	}
	if o.pose.ground >= 0 {
		before := g.Unpack(o.row[2][at : at+4])
		o.pose.before = matrixOf(&before)
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
		e := p.base.extent(k)
		t.by = &m.roll[0][groundClass[o.class]]
		t.x[10] = half * (p.now.extent(k) - e) >> quat.Shift
		t.x[11] = half * (e - p.before.extent(k)) >> quat.Shift * back
		t.x[12] = -s.above(&p.base, k, base)
		return
	}
	was, is := p.base.corner(axis), p.now.corner(axis)
	t.by = &m.roll[1+k&1][groundClass[o.class]]
	t.x[10] = -half * p.base.moves(&p.now, &was, k) >> quat.Shift
	t.x[11] = -half * p.before.moves(&p.base, &was, k) >> quat.Shift * back
	t.x[12] = -half * p.base.moves(&p.now, &is, k) >> quat.Shift
}
