package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// scaleWeights holds the constant weights (Q16) of the terms that predict the scale of a residual,
// by component. Terms are logarithms.
type scaleWeights [3]struct {
	bias     int64
	elapsed  int64 // time since the baseline
	unsteady int64 // change by which the velocity changed over that time, or change by the trend
	speed    int64 // change by the velocity over that time; for a velocity, its value
	learned  int64 // residual of the field in the baseline
	velocity int64 // residual of the velocity
	other    int64 // constant that is added if the largest element of an orientation is not the predicted one
	missed   int64 // residuals of the previous components
}

// Weights of fields that have a velocity, of velocities, and of all other fields.
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

// scaleContext predicts the scales of a field's residuals.
type scaleContext struct {
	to     *scaleWeights
	common [3]int64
	bias   *[3]int32 // adaptive bias by component, in 1/16 of the unit of scale
	missed int64     // sum of the magnitudes of the residuals so far, Q4
	scale  int64     // predicted scale of the last component, Q8
}

// logBias is the constant term. It has the order of magnitude of the other terms, which are
// logarithms.
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

// A velocity is expected to fall by slowing/4096 per tick, for up to maxSlowing ticks.
const (
	slowing    = 39
	maxSlowing = 60
)

func clampTerm(v int64) int64 { return fixed.Clamp(v, -1<<40, 1<<40) }

// perShift converts from perBits to Q16.
const perShift = perBits - quat.Shift

// maxAngle limits angles, Q16.
const maxAngle = 64 * quat.One

func clampAngle(v int64) int64 { return fixed.Clamp(v, -maxAngle, maxAngle) }
