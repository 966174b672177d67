// Package lms predicts numbers as sums of weighted terms, whose weights learn by least mean squares. Integers only: the same
// on every platform.
package lms

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/fixed"
)

// heaviest bounds weights.
const heaviest = 4 << 16

// Bias is 1 among terms that are logarithms: about as large as they are.
const Bias = 8 * fixed.LogOne

// Terms is the most terms of a prediction.
const Terms = 16

// Predictor predicts a number as a sum of weighted terms, and learns the weights by normalized least mean squares: each
// weight by the power of its own term.
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

// Predict gives the sum of weighted terms, at most [Terms] of them.
func (l *Predictor) Predict(x []int64) (sum int64) {
	weight := l.Weights[:len(x)]
	for i, v := range x {
		sum += int64(weight[i]) * v
	}
	return sum >> 16
}

// Learn moves the weights by 1/2^8 of the way toward what makes err zero. Terms and error count in units of scale,
// which is no less than err either way.
func (l *Predictor) Learn(x []int64, err, scale int64) {
	const most = 1 << 14
	inv := int64(1<<32) / max(scale, 1)
	e := int32(fixed.Clamp(err*inv>>24, -most, most))
	if e == 0 {
		return
	}
	for i, v := range x {
		if v == 0 {
			continue
		}
		s := int32(fixed.Clamp(fixed.Clamp(v, -1<<30, 1<<30)*inv>>24, -most, most)) // Q8
		square := s * s >> 8
		p := l.power[i]
		p += (square - p) >> 7
		l.power[i] = p
		step := quotient(int64(e)*int64(s), uint32(max(p, square>>4)+16)) // the product is in Q16: 1/2^8 of it in the weight's
		l.Weights[i] = min(max(l.Weights[i]+step, -heaviest), heaviest)
	}
}

// inverses are 2^24 / (256 + i).
var inverses = func() (t [256]uint32) {
	for i := range t {
		t[i] = 1 << 24 / uint32(256+i)
	}
	return t
}()

// quotient is a / d to eight bits of d, rounded to the nearest, which is faster than a division. a is below 2^30, d
// above 15 and below 2^31.
func quotient(a int64, d uint32) int32 {
	n := bits.Len32(d)
	top := d << (32 - n) >> 23 // of nine bits, the first of them set
	shift := uint(24+n-9) & 63
	return int32((a*int64(inverses[top&255]) + 1<<(shift-1)) >> shift)
}

// Adapt is Learn for terms that are logarithms, of much the same size, and an error that is one.
func (l *Predictor) Adapt(x []int64, err int64) {
	const most, shift = Bias, 12
	err = fixed.Clamp(err, -most, most)
	weight := l.Weights[:len(x)]
	for i, v := range x {
		weight[i] += int32(err * v >> shift)
	}
}
