package adaptive

import "math/bits"

// orient predicts one orientation.
type orient struct {
	base  quat
	pred  [4]quat       // one for each feature
	hold  [3]int64      // the reference under the true index
	feats [3]featureSet // by component
	index int           // predicted index
	sure  int           // 0 to 9: how far it is from the next, sure ones first
}

const sureLevels = 10

// prepare makes the predictions of which want has a bit each, the first always.
func (q *orient) prepare(p *past, ints []int32, g *group, want uint) {
	at := g.at
	q.base.unpack(p.b[at:at+4], g.unpack)
	if g.family == turned {
		var v spin
		k := p.d * g.factor
		for i := range v {
			v[i] = (int64(ints[g.velocity+i]) + int64(p.b[g.velocity+i])) * k >> 8
		}
		q.turn(0, &v)
	} else {
		q.extend(0, p.h1, g, p.r1)
		if want&2 != 0 {
			q.extend(1, p.hd, g, p.rd)
		}
		if want&12 != 0 {
			r := joined(p.r1, p.r12)
			q.extend(2, p.h2, g, r)
			q.extend(3, p.h4, g, joined(r, p.r24))
		}
	}
	q.guess()
}

func (q *orient) turn(j int, v *spin) {
	v.limit()
	var e quat
	e.exp(v)
	q.pred[j].mul(&e, &q.base)
}

// extend turns the base as it turned since frame h, times rate in Q16.
func (q *orient) extend(j int, h []int32, g *group, rate int64) {
	if rate == 0 {
		q.pred[j] = q.base
		return
	}
	var a quat
	a.unpack(h[g.at:g.at+4], g.unpack)
	v := between(&a, &q.base)
	for i := range v {
		v[i] = v[i] * rate >> 16
	}
	q.turn(j, &v)
}

// joined is the rate over two spans, from that over each.
func joined(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return a * b / (a + b)
}

// guess sets the predicted index and how sure it is.
func (q *orient) guess() {
	first, second := int64(-1), int64(-1)
	for i, v := range q.pred[0] {
		v = max(v, -v)
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
	abs := func(i int) int64 { return max(q.pred[0][i], -q.pred[0][i]) }
	n := 0
	for i := range 4 {
		if i == q.index {
			continue
		}
		j := n
		for ; j > 0 && abs(o[j-1]) < abs(i); j-- {
			o[j] = o[j-1]
		}
		o[j] = i
		n++
	}
	return o
}

// express puts the predictions under the true index.
func (q *orient) express(g *group, idx int, want uint) {
	hold := q.base.chart(idx, g.chart)
	for i := range hold {
		q.hold[i] = (hold[i] + 8) >> 4
	}
	for j := range q.pred {
		if want>>j&1 == 0 {
			continue
		}
		t := q.pred[j].chart(idx, g.chart)
		for i := range t {
			q.feats[i][j] = t[i] - q.hold[i]<<4
		}
	}
}
