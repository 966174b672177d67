// Package lms predicts numbers as sums of weighted terms, whose weights learn by least mean
// squares. Integers only: the same on every platform.
package lms

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// heaviest bounds weights.
const heaviest = 4 << 16

// Bias is 1 among terms that are logarithms: about as large as they are.
const Bias = 8 * fixed.LogOne

// Terms is the most terms of a prediction.
const Terms = 16

// Predictor predicts a number as a sum of weighted terms, and learns the weights by normalized
// least mean squares: each weight by the power of its own term.
type Predictor struct {
	Weights [Terms]int32 // Q16
	power   [Terms]int32 // mean square of the scaled term, Q8
}

// New makes a predictor of these weights, Q16; others are 0.
func New(weights ...int32) (l Predictor) {
	copy(l.Weights[:], weights)
	for i := range l.power {
		l.power[i] = 1 << 8
	}
	return l
}

// Predict gives the sum of weighted terms.
func (l *Predictor) Predict(x *[Terms]int64) int64 {
	w := &l.Weights
	return (dot((*[4]int32)(w[0:]), (*[4]int64)(x[0:])) + dot((*[4]int32)(w[4:]), (*[4]int64)(x[4:])) +
		dot((*[4]int32)(w[8:]), (*[4]int64)(x[8:])) + dot((*[4]int32)(w[12:]), (*[4]int64)(x[12:]))) >> 16
}

// Learn moves the weights by 1/2^8 of the way toward what makes err zero. Terms and error count in
// units of scale, which is no less than err either way.
func (l *Predictor) Learn(x *[Terms]int64, err, scale int64) {
	const most = 1 << 14
	scale = fixed.Clamp(scale, 1, 1<<32)
	inv, limit := 1<<32/scale, most>>8*scale
	e := int32(fixed.Clamp(err, -limit, limit) * inv >> 24)
	if e == 0 {
		return
	}
	for i, v := range x {
		if v == 0 {
			continue
		}
		s := int32(fixed.Clamp(v, -limit, limit) * inv >> 24) // Q8
		square := s * s >> 8
		p := l.power[i]
		p += (square - p) >> 7
		l.power[i] = p
		step := quotient(int64(e)*int64(s), uint32(max(p, square>>4)+16)) // the product is in Q16: 1/2^8 of it in the weight's
		l.Weights[i] = min(max(l.Weights[i]+step, -heaviest), heaviest)
	}
}

// quotient is a / d for the power of two that is nearest to d: near enough for a step, and faster
// than a division. a is below 2^30 on either side, d above 15 and below 2^31.
func quotient(a int64, d uint32) int32 {
	shift := uint(bits.Len32(d+d>>1)-1) & 31
	return int32((a + 1<<(shift-1)) >> shift)
}

// Adapt is Learn for terms that are logarithms, of much the same size, and an error that is one.
func (l *Predictor) Adapt(x *[Terms]int64, err int64) {
	const most = Bias
	w := &l.Weights
	err = fixed.Clamp(err, -most, most)
	adapt((*[4]int32)(w[0:]), (*[4]int64)(x[0:]), err)
	adapt((*[4]int32)(w[4:]), (*[4]int64)(x[4:]), err)
	adapt((*[4]int32)(w[8:]), (*[4]int64)(x[8:]), err)
	adapt((*[4]int32)(w[12:]), (*[4]int64)(x[12:]), err)
}

// The compiler unrolls no loops, and looks at bounds within them.

func dot(w *[4]int32, x *[4]int64) int64 {
	return int64(w[0])*x[0] + int64(w[1])*x[1] + int64(w[2])*x[2] + int64(w[3])*x[3]
}

func adapt(w *[4]int32, x *[4]int64, err int64) {
	const shift = 12
	w[0] += int32(err * x[0] >> shift)
	w[1] += int32(err * x[1] >> shift)
	w[2] += int32(err * x[2] >> shift)
	w[3] += int32(err * x[3] >> shift)
}
