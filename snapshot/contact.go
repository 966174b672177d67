package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// matrix is a rotation by its rows, Q16.
type matrix [3][3]int64

func matrixOf(q *quat.Fixed) matrix {
	x, y, z, w := q[0], q[1], q[2], q[3]
	const one, s = quat.One, quat.Shift - 1
	return matrix{
		{one - (y*y+z*z)>>s, (x*y - z*w) >> s, (x*z + y*w) >> s},
		{(x*y + z*w) >> s, one - (x*x+z*z)>>s, (y*z - x*w) >> s},
		{(x*z - y*w) >> s, (y*z + x*w) >> s, one - (x*x+y*y)>>s},
	}
}

// extent is how far a cube of half size 1 reaches along an axis, Q16.
func (m *matrix) extent(k int) int64 {
	return fixed.Abs(m[k][0]) + fixed.Abs(m[k][1]) + fixed.Abs(m[k][2])
}

// corner is the lowest one along an axis, by the signs of its coordinates.
func (m *matrix) corner(axis int) (c [3]int64) {
	for i, v := range m[axis] {
		c[i] = 1
		if v > 0 {
			c[i] = -1
		}
	}
	return c
}

// moves is how far a corner moves along axis k from m to o, Q16.
func (m *matrix) moves(o *matrix, c *[3]int64, k int) (sum int64) {
	for i := range c {
		sum += (o[k][i] - m[k][i]) * c[i]
	}
	return sum
}

// pose is how an object lies and lay. It is known where its orientation is coded before its place.
type pose struct {
	known             bool
	ground            int      // the axis along which it lies on the ground, or -1
	before, base, now matrix   // before only if it lies on the ground
	turn              [3]int64 // from base to now
}

// size is how large objects seem to be along an axis, and where the ground seems to be: Q4 both.
type size struct {
	floor int64 // places of objects that lie on it with a side
	half  int32
	count int32 // of what taught it
}

const (
	leastHalf = 16
	mostHalf  = 1 << 24
	sized     = 1 << 12 // changes of extent that teach a size, Q16
	certain   = 256     // after so many, only objects near the ground teach it
	slowest   = 1 << 12 // and after so many it no longer learns slower
)

// learn takes what an object of the extent, above the ground by so much, did: what its place and extent changed by.
// Medians are what is sought, so that it does not matter how wild the others are; an eighth of objects lie lower than
// the ground, pressed into it.
func (s *size) learn(above, place, extent int64) {
	step := s.half>>8 + 1
	if above < 0 {
		step *= -7
	}
	s.floor += int64(step)
	near := fixed.Abs(above) < leastHalf+int64(s.half)>>3
	if s.count > certain && !near || fixed.Abs(extent) < sized {
		return
	}
	step = s.half/(4+s.count/4) + 1
	if (place-int64(s.half)*extent>>quat.Shift > 0) != (extent > 0) {
		step = -step
	}
	s.half = min(max(s.half+step, leastHalf), mostHalf)
	s.count = min(s.count+1, slowest)
}

// above is how far the lowest corner is above the ground along axis k if the place is at, Q4.
func (s *size) above(m *matrix, k int, at int64) int64 {
	return at - s.floor - int64(s.half)*(m.extent(k)-quat.One)>>quat.Shift
}

// level finds the ground where nothing is known of it yet: at the lowest object.
func (w *walk) level() {
	if w.schema.anchor < 0 || w.schema.lie < 0 {
		return
	}
	for k := range w.state.motion[0].size {
		if s := &w.state.motion[0].size[k]; s.count == 0 {
			s.floor = w.hist.low[k] * 16
		}
	}
}

// touches finds the axis along which the loaded object lies on the ground, or -1.
func (w *walk) touches(m *motionModel, at, n int) int {
	o := &w.object
	axis, least := -1, int64(0)
	for k := range n {
		s := &m.size[k]
		h := fixed.Abs(s.above(&o.pose.base, k, int64(o.base[at+k])*16))
		if h < leastHalf+int64(s.half)>>4 && (axis < 0 || h < least) {
			axis, least = k, h
		}
	}
	return axis
}

// lies finds how the loaded object lies and lay.
func (w *walk) lies() {
	o, s := &w.object, w.schema
	o.pose.known, o.pose.ground, o.turned = s.lie >= 0, -1, 0
	if !o.pose.known {
		return
	}
	g, at := &s.grains[0], s.at[s.lie]
	base := g.Unpack(o.base[at : at+4])
	o.pose.base = matrixOf(&base)
	o.pose.now, o.pose.turn = o.pose.base, [3]int64{}
	if s.anchor >= 0 {
		o.pose.ground = w.touches(&w.state.motion[0], s.at[s.anchor], s.fields[s.anchor].N)
	}
	if o.pose.ground >= 0 {
		before := g.Unpack(o.row[2][at : at+4])
		o.pose.before = matrixOf(&before)
	}
}

// grounded is the class of an object that lies on the ground, by what it would be else.
var grounded = [classes]int{0, 1, 2, 0, 3, 4, 4}

// rolls fills in the terms of a place's component k for an object that lies on the ground. Along the axis it lies on
// they are what its extent and height ask for; across, how far it would move if the corner below it stays, the one it
// lay on and the one it will lie on, and how far it would have moved so.
func (w *walk) rolls(m *motionModel, t *placeTerms, k int, base int64) {
	o, axis := &w.object, w.object.pose.ground
	p, s, back := &o.pose, &m.size[axis], int64(0)
	half := int64(s.half)
	if o.lag[2] > 0 {
		back = w.hist.distance / o.lag[2]
	}
	for i := range p.turn {
		t.x[13+i] = p.turn[i] * half >> quat.Shift
	}
	if k == axis {
		e := p.base.extent(k)
		t.by = &m.roll[0][grounded[o.class]]
		t.x[10] = half * (p.now.extent(k) - e) >> quat.Shift
		t.x[11] = half * (e - p.before.extent(k)) >> quat.Shift * back
		t.x[12] = -s.above(&p.base, k, base)
		return
	}
	was, is := p.base.corner(axis), p.now.corner(axis)
	t.by = &m.roll[1+k&1][grounded[o.class]]
	t.x[10] = -half * p.base.moves(&p.now, &was, k) >> quat.Shift
	t.x[11] = -half * p.before.moves(&p.base, &was, k) >> quat.Shift * back
	t.x[12] = -half * p.base.moves(&p.now, &is, k) >> quat.Shift
}
