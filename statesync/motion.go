package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// scaleWeights are the constant weights of the logarithms that predict the scale of a residual, by
// component, Q16.
type scaleWeights [3]struct {
	bias     int64
	elapsed  int64 // time since the baseline
	unsteady int64 // change of the velocity, or the trend, over that time
	speed    int64 // the velocity over that time, or the value of one
	learned  int64 // residual in the baseline
	velocity int64 // residual of the velocity
	other    int64 // 1 if the largest element of an orientation is not the predicted one
	missed   int64 // residuals of the components before
}

// Weights of fields with a velocity, of velocities, and of other fields.
var (
	movedScale = scaleWeights{
		{bias: -35600, elapsed: 55000, unsteady: 44600, speed: -9600, learned: 3500, velocity: 9900, other: 10100, missed: 2200},
		{bias: -20900, elapsed: 31300, unsteady: 26300, speed: -5600, learned: 2600, velocity: 4500, other: 4700, missed: 28900},
		{bias: -11600, elapsed: 18400, unsteady: 16800, speed: 700, learned: -600, velocity: 9300, other: 3900, missed: 26500},
	}
	velocityScale = scaleWeights{
		{bias: -22000, elapsed: 80900, speed: 14900, learned: 20100, missed: 1400},
		{bias: -6300, elapsed: 20900, speed: 3900, learned: 4700, missed: 50000},
		{bias: 5600, elapsed: 13600, speed: 15400, learned: -4200, missed: 31700},
	}
	otherScale = scaleWeights{
		{bias: 3000, elapsed: 30900, learned: 27700, other: 5800, missed: -200},
		{bias: 4900, elapsed: 14000, learned: 15900, other: 700, missed: 29100},
		{bias: -14400, elapsed: 11200, learned: 18000, other: 5100, missed: 41800},
	}
)

// weigh sets the weights of all fields.
func (p *plan) weigh() {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case f.by >= 0:
			f.scale = &movedScale
		case p.isVelocity(i):
			f.scale = &velocityScale
		default:
			f.scale = &otherScale
		}
	}
}

// scaleContext predicts the scales of a field's residuals.
type scaleContext struct {
	to     *scaleWeights
	common [3]int64
	bias   *[3]int32 // adaptive, in 1/16
	missed int64     // sum of the residuals so far, Q4
	scale  int64     // of the component, Q8
}

// logBias is the constant among terms that are logarithms; it has their order of magnitude.
const logBias = 8 * fixed.LogOne

func (c *scaleContext) init(f *field, m *fieldModel, elapsed, unsteady, speed, learned, velocity int64) {
	c.to, c.bias, c.missed = f.scale, &m.bias, 0
	elapsed = fixed.Log2(elapsed * 16)
	for k := range c.common {
		w := &c.to[k]
		c.common[k] = w.bias*logBias + w.elapsed*elapsed + w.unsteady*unsteady + w.speed*speed + w.learned*learned + w.velocity*velocity
	}
}

// level returns the level of component k.
func (c *scaleContext) level(k int) int {
	c.scale = (c.common[k]+c.to[k].missed*fixed.Log2(c.missed))>>16 + int64(c.bias[k]>>4)
	return level(c.scale)
}

// learn adapts the bias of component k to its residual, Q4.
func (c *scaleContext) learn(k int, residual int64) {
	c.bias[k] += int32(fixed.Clamp(fixed.Log2(residual)-c.scale, -logBias, logBias) >> 2)
	c.missed += fixed.Abs(residual)
}

// codeMotion codes a field of numbers or angles, predicted from the baseline and velocities.
func (pc *payloadCodec) codeMotion(i int, o *objectContext) {
	f := &pc.plan.fields[i]
	cur, was := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
	var move [3]int64 // predicted change, Q4
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	switch {
	case f.by >= 0:
		v := pc.plan.fields[f.by].at
		for k := range cur {
			then, is := int64(o.was[v+k])*f.per, int64(o.now[v+k])*f.per
			move[k] = clampTerm(((then+is)*o.elapsed>>1 + is - then) >> 12)
			speed += fixed.Abs(is) * o.elapsed >> 12
			unsteady += fixed.Abs(is-then) * o.elapsed >> 12
		}
		velocity = o.misses[f.by]
	case f.trend < 0:
		slows := min(o.elapsed, maxSlowing) * slowing
		for k := range cur {
			move[k] = -int64(was[k]) * slows >> 8
			speed += fixed.Abs(int64(was[k])) * 16
		}
	default:
		for k := range cur {
			move[k] = clampTerm(int64(o.trends[f.trend+k]) * o.elapsed >> 5)
			unsteady += fixed.Abs(move[k])
		}
	}
	c := &o.scales
	c.init(f, &pc.out.state.fields[i], o.elapsed, fixed.Log2(unsteady), fixed.Log2(speed), o.miss(i), velocity)
	for k := range cur {
		guess := f.clampPrediction(int64(was[k])*16 + move[k])
		v := (guess + 8) >> 4
		d := pc.number(c.level(k), f.wrapDifference(int64(cur[k])-v))
		if pc.Decoding {
			cur[k] = pc.addDifference(f, v, d)
		}
		if c.learn(k, (v+d)*16-guess); f.trend >= 0 {
			o.newTrends[f.trend+k] = uint64(fixed.Clamp(f.wrapDifference(int64(cur[k])-int64(was[k]))*256/o.elapsed, -1<<30, 1<<30))
		}
	}
	o.setMissed(i)
}

// A velocity is expected to fall by slowing/4096 per tick, for up to maxSlowing ticks.
const (
	slowing    = 39
	maxSlowing = 60
)

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

func clampTerm(v int64) int64 { return fixed.Clamp(v, -1<<40, 1<<40) }

// perShift converts from perBits to Q16.
const perShift = perBits - quat.Shift

// codeQuat codes an orientation, predicted from the baseline and its angular velocity.
func (pc *payloadCodec) codeQuat(i int, o *objectContext) {
	s, f := pc.out.state, &pc.plan.fields[i]
	cur, gr := o.now[f.at:f.at+f.N], &f.grain
	var q quat.Fixed
	gr.Unpack(&q, o.was[f.at:f.at+f.N])
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	if f.by >= 0 {
		v := pc.plan.fields[f.by].at
		var turn [3]int64
		for k := range turn {
			then, is := int64(o.was[v+k])*f.per, int64(o.now[v+k])*f.per
			turn[k] = clampAngle(((then+is)*o.elapsed>>1 + is - then) >> perShift)
			speed += min(fixed.Abs(is)*o.elapsed>>perShift, maxAngle)
			unsteady += min(fixed.Abs(is-then)*o.elapsed>>perShift, maxAngle)
		}
		was := q
		q.ExpAny(turn)
		q.Mul(&q, &was)
		velocity = o.misses[f.by]
	}
	unsteady, speed = gr.Size(unsteady), gr.Size(speed)
	learned := o.miss(i)
	largest, other := s.largest.Code(&pc.Coder, int(cur[0]), &q, gr, int(fixed.Clamp((unsteady+learned)>>9, 0, quat.Doubts-1)))
	pc.Store(&cur[0], int32(largest))
	if q[largest] < 0 {
		q[0], q[1], q[2], q[3] = -q[0], -q[1], -q[2], -q[3]
	}
	c := &o.scales
	c.init(f, &s.fields[i], o.elapsed, unsteady, speed, learned, velocity)
	if other {
		for k := range c.common {
			c.common[k] += c.to[k].other * logBias
		}
	}
	for e, k := 0, 0; e < 4; e++ {
		if e == largest {
			continue
		}
		guess := fixed.Clamp(gr.Pack(q[e]), int64(f.Lo)*16, int64(f.Hi)*16)
		v := (guess + 8) >> 4
		d := pc.number(c.level(k), int64(cur[k+1])-v)
		if pc.Decoding {
			cur[k+1] = pc.Check(v+d, f.Lo, f.Hi)
		}
		c.learn(k, (v+d)*16-guess)
		k++
	}
	o.setMissed(i)
}

// maxAngle limits angles, Q16.
const maxAngle = 64 * quat.One

func clampAngle(v int64) int64 { return fixed.Clamp(v, -maxAngle, maxAngle) }
