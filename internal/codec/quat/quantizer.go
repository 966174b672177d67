// Package quat computes with orientations: in fixed point for prediction by codecs (Precise for
// RPCs, Fixed for snapshots and state), and in floating point for smoothing and measurements
// (Float). It also quantizes orientations to their smallest three components and models the index
// of the largest.
package quat

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

// Quantizer converts between the smallest three components of an orientation, as integers, and a
// quaternion in fixed point. It precomputes the divisions.
type Quantizer struct {
	zero int64 // twice the component that stands for an element of 0
	step int64 // half an element per component step, shifted by quantizerShift
	per  int64 // component steps in Q4 per element of 1, shifted by quantizerShift
	Unit int64 // rotation in radians per component step, Q16, rounded up
	log  int64 // log2 of Unit in Q4
}

const quantizerShift = 24

// NewQuantizer returns the quantizer of components from lo, for -1/sqrt 2, to hi, for 1/sqrt 2.
// hi-lo is 2 to 2^20.
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

// Unpack sets q to the quaternion of a row: the index of its largest element, followed by the
// others.
func (g *Quantizer) Unpack(q *Fixed, row []int32) {
	row = row[:4]
	x, y, z := g.element(row[1]), g.element(row[2]), g.element(row[3])
	w := int64(fixed.Sqrt(uint64(max(0, One*One-x*x-y*y-z*z))))
	switch row[0] & 3 {
	case 0:
		q[0], q[1], q[2], q[3] = w, x, y, z
	case 1:
		q[0], q[1], q[2], q[3] = x, w, y, z
	case 2:
		q[0], q[1], q[2], q[3] = x, y, w, z
	default:
		q[0], q[1], q[2], q[3] = x, y, z, w
	}
}

func (g *Quantizer) element(v int32) int64 {
	return ((2*int64(v)-g.zero)*g.step + 1<<(quantizerShift-1)) >> quantizerShift
}

// Size returns log2 of an angle measured in component steps.
func (g *Quantizer) Size(angle int64) int64 { return max(fixed.Log2(angle*16)-g.log, 0) }

// Pack returns element v in component steps, in Q4 and not limited to the bounds.
func (g *Quantizer) Pack(v int64) int64 {
	return (v*g.per+1<<(quantizerShift-1))>>quantizerShift + g.zero*8
}
