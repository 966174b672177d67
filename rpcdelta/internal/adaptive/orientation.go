package adaptive

import "math/bits"

// orient predicts one orientation.
type orientation struct {
	base      quat
	pred      [2]quat       // one for each feature
	ref       [3]int64      // the reference under the true index
	features  [3]featureSet // by component
	index     int           // predicted index
	ambiguity int           // 0 to 9: how far it is from the next, sure ones first
}

const ambiguityLevels = 10

// prepare makes the predictions of which want has a bit each, the first always.
func (q *orientation) predict(p *refFrames, ints []int32, g *group, want uint) {
	q.base = unpackQuat(p.ref[g.at:g.at+4], g.unpackScale)
	if g.family == familyTurned {
		var v rotationVector
		k := p.dist * g.velocityFactor
		for i := range v {
			v[i] = (int64(ints[g.velocity+i]) + int64(p.ref[g.velocity+i])) * k >> 8
		}
		v.clamp()
		q.pred[0] = exp(&v).mul(q.base)
	} else {
		q.pred[0] = q.extrapolate(p.h1, g, p.r1)
		if want&2 != 0 {
			q.pred[1] = q.extrapolate(p.hd, g, p.rd)
		}
	}
	q.predictIndex()
}

// extended turns the base as it turned since frame h, times rate in Q16.
func (q *orientation) extrapolate(h []int32, g *group, rate int64) quat {
	if rate == 0 {
		return q.base
	}
	return q.base.extrapolate(unpackQuat(h[g.at:g.at+4], g.unpackScale), rate)
}

// magnitudes are those of the first prediction's elements.
func (q *orientation) absolutes() [4]int64 {
	t := &q.pred[0]
	return [4]int64{max(t.x, -t.x), max(t.y, -t.y), max(t.z, -t.z), max(t.w, -t.w)}
}

// guess sets the predicted index and how sure it is.
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

// others are the indexes but the predicted, the likeliest first.
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

// express puts the predictions under the true index.
func (q *orientation) toComponents(g *group, idx int, want uint) {
	t := q.base.smallestThree(idx, g.packScale)
	hold := vec3{(t.x + 8) >> 4, (t.y + 8) >> 4, (t.z + 8) >> 4}
	q.ref = [3]int64{hold.x, hold.y, hold.z}
	for j := range q.pred {
		if want>>j&1 == 0 {
			continue
		}
		t := q.pred[j].smallestThree(idx, g.packScale)
		q.features[0][j] = t.x - hold.x<<4
		q.features[1][j] = t.y - hold.y<<4
		q.features[2][j] = t.z - hold.z<<4
	}
}
