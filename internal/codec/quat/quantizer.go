// Package quat computes with orientations as unit quaternions: in fixed point, as the codecs
// predict them ([Fixed]), and in floating point, for measurements ([Float]). On the wire an
// orientation is the index of the largest element and the other three elements as integers
// (smallest three).
package quat

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Quantizer converts between elements of quaternions and the integers of the smallest three. It
// keeps the divisions that this needs.
type Quantizer struct {
	zero int64 // twice the component that stands for 0
	step int64 // an element's half step, by 2^quantizerShift
	per  int64 // components in Q4 to an element of 1, by 2^quantizerShift
	Unit int64 // of rotation, Q16, to one of a component, and more
	log  int64 // of unit in Q4, logarithm
}

const quantizerShift = 24

// NewQuantizer returns a quantizer for components from lo to hi, which represent -1/sqrt 2 and
// 1/sqrt 2. hi - lo is 2 to 2^20.
func NewQuantizer(lo, hi int32) Quantizer {
	span := int64(hi) - int64(lo)
	unit := 2*invRoot2/span + 1
	return Quantizer{
		zero: int64(lo) + int64(hi),
		step: invRoot2 << quantizerShift / span,
		per:  span * 8 << quantizerShift / invRoot2,
		Unit: unit,
		log:  fixed.Log2(unit * 16),
	}
}

// Unpack returns the quaternion of a row: the index of its largest element, and the other three.
func (g *Quantizer) Unpack(row []int32) Fixed {
	row = row[:4]
	x, y, z := g.element(row[1]), g.element(row[2]), g.element(row[3])
	w := int64(fixed.Sqrt(uint64(max(0, One*One-x*x-y*y-z*z))))
	switch row[0] & 3 {
	case 0:
		return Fixed{w, x, y, z}
	case 1:
		return Fixed{x, w, y, z}
	case 2:
		return Fixed{x, y, w, z}
	default:
		return Fixed{x, y, z, w}
	}
}

func (g *Quantizer) element(v int32) int64 {
	return ((2*int64(v)-g.zero)*g.step + 1<<(quantizerShift-1)) >> quantizerShift
}

// Size returns the logarithm of a sum of angles, in components.
func (g *Quantizer) Size(angle int64) int64 { return max(fixed.Log2(angle*16)-g.log, 0) }

// Pack returns the element v as a component, in Q4 and without limits.
func (g *Quantizer) Pack(v int64) int64 {
	return (v*g.per+1<<(quantizerShift-1))>>quantizerShift + g.zero*8
}

// Doubts is the number of levels of uncertainty of a prediction.
const Doubts = 8

// LargestModel holds the adaptive probabilities of the index of the largest element, given a
// prediction. Call Init before use.
type LargestModel struct {
	first [rangecoder.Levels][Doubts]rangecoder.Prob // it is another than that of the prediction
	other [2]rangecoder.Prob
}

// Init resets the model to its initial probabilities.
func (m *LargestModel) Init() {
	for i := range m.first {
		rangecoder.Fill(m.first[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(m.other[:], rangecoder.Half, 0)
}

// Code codes the index of the largest element, 0 to 3, of an orientation of the quantizer g whose
// prediction is q. It reports whether the index differs from that of q. doubt is below [Doubts].
func (m *LargestModel) Code(c *rangecoder.Coder, index int, q *Fixed, g *Quantizer, doubt int) (largest int, other bool) {
	first, second := 0, -1
	for i := range q {
		if fixed.Abs(q[i]) > fixed.Abs(q[first]) {
			first = i
		}
	}
	for i := range q {
		if i != first && (second < 0 || fixed.Abs(q[i]) > fixed.Abs(q[second])) {
			second = i
		}
	}
	margin := g.Size(fixed.Abs(q[first]) - fixed.Abs(q[second]))
	if !c.Bit(&m.first[fixed.Clamp((margin+256)*2>>8, 0, rangecoder.Levels-1)][doubt], index != first) {
		return first, false
	}
	if !c.Bit(&m.other[0], index != second) {
		return second, true
	}
	var rest [2]int
	n := 0
	for i := range q {
		if i != first && i != second {
			rest[n] = i
			n++
		}
	}
	if c.Bit(&m.other[1], index == rest[1]) {
		return rest[1], true
	}
	return rest[0], true
}
