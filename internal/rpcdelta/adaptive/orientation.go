package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// orientation predicts a quaternion. Its predictions are rotations; they become features once the
// index of the largest element is known.
type orientation struct {
	base     quat.Precise    // the reference
	pred     [2]quat.Precise // one prediction per feature
	ref      [3]int64        // the reference, expressed with the coded index
	features [3]featureSet   // by component
	index    int             // predicted index of the largest element
	// ambiguity is 0 to 9. It grows as the two largest elements of the prediction approach each
	// other.
	ambiguity int
}

const ambiguityLevels = 10

// predict computes the predictions of the features in the bit mask want, and the first one in any
// case.
func (q *orientation) predict(p *refFrames, ints []int32, g *group, want uint) {
	q.base = quat.UnpackPrecise(p.ref[g.at:g.at+4], g.unpackScale)
	if g.family == familyTurned {
		var v quat.Vector
		k := p.dist * g.velocityFactor
		for i := range v {
			v[i] = (int64(ints[g.velocity+i]) + int64(p.ref[g.velocity+i])) * k >> 8
		}
		v.Clamp()
		q.pred[0] = quat.ExpPrecise(&v).Mul(q.base)
	} else {
		q.pred[0] = q.extrapolate(p.h1, g, p.r1)
		if want&2 != 0 {
			q.pred[1] = q.extrapolate(p.hd, g, p.rd)
		}
	}
	q.predictIndex()
}

// extrapolate continues the rotation since frame h at a rate in Q16.
func (q *orientation) extrapolate(h []int32, g *group, rate int64) quat.Precise {
	if rate == 0 {
		return q.base
	}
	return q.base.Extrapolate(quat.UnpackPrecise(h[g.at:g.at+4], g.unpackScale), rate)
}

// absolutes returns the absolute values of the first prediction's elements.
func (q *orientation) absolutes() [4]int64 {
	t := &q.pred[0]
	return [4]int64{max(t.X, -t.X), max(t.Y, -t.Y), max(t.Z, -t.Z), max(t.W, -t.W)}
}

// predictIndex sets the predicted index and its ambiguity.
func (q *orientation) predictIndex() {
	first, second := int64(-1), int64(-1)
	for i, v := range q.absolutes() {
		if v > first {
			second, first, q.index = first, v, i
		} else if v > second {
			second = v
		}
	}
	q.ambiguity = max(0, min(ambiguityLevels-1, 30-bits.Len64(uint64(first-second))))
}

// otherIndexes returns the indexes other than the predicted one, the most likely first.
func (q *orientation) otherIndexes() (o [3]int) {
	m := q.absolutes()
	n := 0
	for i := range m {
		if i == q.index {
			continue
		}
		j := n
		for ; j > 0 && m[o[j-1]] < m[i]; j-- {
			o[j] = o[j-1]
		}
		o[j] = i
		n++
	}
	return o
}

// toComponents expresses the reference and the predictions in want as the smallest three under
// index idx.
func (q *orientation) toComponents(g *group, idx int, want uint) {
	t := q.base.Smallest(idx, g.packScale)
	ref := quat.Smallest{X: (t.X + 8) >> 4, Y: (t.Y + 8) >> 4, Z: (t.Z + 8) >> 4}
	q.ref = [3]int64{ref.X, ref.Y, ref.Z}
	for j := range q.pred {
		if want>>j&1 == 0 {
			continue
		}
		t := q.pred[j].Smallest(idx, g.packScale)
		q.features[0][j] = t.X - ref.X<<4
		q.features[1][j] = t.Y - ref.Y<<4
		q.features[2][j] = t.Z - ref.Z<<4
	}
}
