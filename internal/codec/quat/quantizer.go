// Package orientation computes with orientations in fixed point, as codecs predict them. Package rotation is the same in
// floats, for measurements.
package quat

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

// Quantizer is how the smallest three of an orientation stand for elements, so that none of it is divided for again.
type Quantizer struct {
	zero int64 // twice the component that stands for 0
	step int64 // an element's half step, by 2^quantizerShift
	per  int64 // components in Q4 to an element of 1, by 2^quantizerShift
	Unit int64 // of rotation, Q16, to one of a component, and more
	log  int64 // of unit in Q4, logarithm
}

const quantizerShift = 24

// NewQuantizer is that of components between lo and hi, which stand for -1/sqrt 2 and 1/sqrt 2; hi is at least 2 and at most
// 2^20 above lo.
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

// Unpack gives the quaternion of a row: the index of its largest element, and the others.
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

// Size is the logarithm of a sum of angles, in components.
func (g *Quantizer) Size(angle int64) int64 { return max(fixed.Log2(angle*16)-g.log, 0) }

// Pack is element v as a component, in Q4 and not bounded.
func (g *Quantizer) Pack(v int64) int64 {
	return (v*g.per+1<<(quantizerShift-1))>>quantizerShift + g.zero*8
}
