package adaptive

import "math/bits"

// orient predicts one orientation.
type orient struct {
	base  quat
	pred  [2]quat       // one for each feature
	hold  [3]int64      // the reference under the true index
	feats [3]featureSet // by component
	index int           // predicted index
	sure  int           // 0 to 9: how far it is from the next, sure ones first
}

const sureLevels = 10

// prepare makes the predictions of which want has a bit each, the first always.
func (q *orient) prepare(p *past, ints []int32, g *group, want uint) {
	q.base = unpack(p.b[g.at:g.at+4], g.unpack)
	if g.family == turned {
		var v spin
		k := p.d * g.factor
		for i := range v {
			v[i] = (int64(ints[g.velocity+i]) + int64(p.b[g.velocity+i])) * k >> 8
		}
		v.limit()
		q.pred[0] = exp(&v).mul(q.base)
	} else {
		q.pred[0] = q.extended(p.h1, g, p.r1)
		if want&2 != 0 {
			q.pred[1] = q.extended(p.hd, g, p.rd)
		}
	}
	q.guess()
}

// extended turns the base as it turned since frame h, times rate in Q16.
func (q *orient) extended(h []int32, g *group, rate int64) quat {
	if rate == 0 {
		return q.base
	}
	return q.base.extended(unpack(h[g.at:g.at+4], g.unpack), rate)
}

// magnitudes are those of the first prediction's elements.
func (q *orient) magnitudes() [4]int64 {
	t := &q.pred[0]
	return [4]int64{max(t.x, -t.x), max(t.y, -t.y), max(t.z, -t.z), max(t.w, -t.w)}
}

// guess sets the predicted index and how sure it is.
func (q *orient) guess() {
	first, second := int64(-1), int64(-1)
	for i, v := range q.magnitudes() {
		if v > first {
			second, first, q.index = first, v, i
		} else if v > second {
			second = v
		}
	}
	q.sure = max(0, min(sureLevels-1, 30-bits.Len64(uint64(first-second))))
}

// others are the indexes but the predicted, the likeliest first.
func (q *orient) others() (o [3]int) {
	m := q.magnitudes()
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
func (q *orient) express(g *group, idx int, want uint) {
	t := q.base.chart(idx, g.chart)
	hold := vec3{(t.x + 8) >> 4, (t.y + 8) >> 4, (t.z + 8) >> 4}
	q.hold = [3]int64{hold.x, hold.y, hold.z}
	for j := range q.pred {
		if want>>j&1 == 0 {
			continue
		}
		t := q.pred[j].chart(idx, g.chart)
		q.feats[0][j] = t.x - hold.x<<4
		q.feats[1][j] = t.y - hold.y<<4
		q.feats[2][j] = t.z - hold.z<<4
	}
}
