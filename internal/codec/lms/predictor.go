// Package lms predicts numbers as weighted sums of terms. The weights adapt by normalized least
// mean squares (LMS). All arithmetic is in integers: the same on every platform.
package lms

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

const heaviest = 4 << 16

// Bias is the constant term of predictions whose terms are logarithms. It has their order of
// magnitude.
const Bias = 8 * fixed.LogOne

// Terms is the maximum number of terms of a prediction.
const Terms = 16

// Weights are the weights of a prediction, Q16.
type Weights [Terms]int32

// Predictor predicts a number as a weighted sum of terms. It adapts the weights by normalized least
// mean squares; each weight is normalized by the power of its own term.
type Predictor struct {
	Weights
	power [Terms]int32 // mean square of the scaled term, Q8
}

// New returns a predictor with the given weights, Q16. The others are 0.
func New(weights ...int32) (l Predictor) {
	copy(l.Weights[:], weights)
	for i := range l.power {
		l.power[i] = 1 << 8
	}
	return l
}

// Predict returns the weighted sum of the terms.
func (w *Weights) Predict(x *[Terms]int64) int64 {
	return (dot((*[4]int32)(w[0:]), (*[4]int64)(x[0:])) + dot((*[4]int32)(w[4:]), (*[4]int64)(x[4:])) +
		dot((*[4]int32)(w[8:]), (*[4]int64)(x[8:])) + dot((*[4]int32)(w[12:]), (*[4]int64)(x[12:]))) >> 16
}

// Learn moves the weights by 1/2^8 of the step that would make err zero. Terms and error are
// measured in units of scale, which is at least |err|.
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

// quotient approximates a / d by dividing by the power of two nearest to d, which is accurate
// enough for a step and faster than a division. |a| is below 2^30, and d from 16 to 2^31 - 1.
func quotient(a int64, d uint32) int32 {
	shift := uint(bits.Len32(d+d>>1)-1) & 31
	return int32((a + 1<<(shift-1)) >> shift)
}

// Adapt is like Learn if the terms and the error are logarithms, which have similar sizes.
func (l *Predictor) Adapt(x *[Terms]int64, err int64) {
	const most = Bias
	w := &l.Weights
	err = fixed.Clamp(err, -most, most)
	adapt((*[4]int32)(w[0:]), (*[4]int64)(x[0:]), err)
	adapt((*[4]int32)(w[4:]), (*[4]int64)(x[4:]), err)
	adapt((*[4]int32)(w[8:]), (*[4]int64)(x[8:]), err)
	adapt((*[4]int32)(w[12:]), (*[4]int64)(x[12:]), err)
}

// The loops are unrolled by hand: the compiler does not unroll loops, and checks bounds in them.

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
