package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// placeTerms are what a component of a place is predicted from.
type placeTerms struct {
	x      [lms.Terms]int64
	by     *lms.Predictor // which weighs them
	g      int64          // velocity
	out    int64          // how far below the ground it would lead
	rested bool           // the object was at rest
}

// What the scale of a place's misses is predicted from: logarithms, but for placeBias, placeRested and placeAlone, which are
// lms.Bias where they hold.
const (
	placeJerk     = iota // over the references
	placeJerk1           // over the newest ones
	placeUnsteady        // how much the velocity changed over the references
	placeSpeed           // of the object
	placeMissed          // by the components before
	placeTurned          // what the orientation was missed by
	placeLast            // what this place was missed by last
	placeBias            // always
	placeRested          // the object was at rest
	placeAlone           // there is no nearest object
	placeGap             // how far away it is
	placeFar             // how far this component would go
	placeOut             // how far below the ground
	placeNear            // what the nearest object's place was missed by
	placeForced          // the larger of placeTurned and placeOut
	placeTurned2         // the square of placeTurned: a turn that was missed a little says nothing
)

// codePlace codes field number field, numbers that move together, into cur.
func (w *walk) codePlace(field int, m *motionModel, cur []int32) {
	o, f, at := &w.object, &w.schema.fields[field], w.schema.at[field]
	anchor, ground := field == w.schema.anchor, 0
	if !anchor {
		w.steadiness(at, f.N)
	} else if o.pose.ground >= 0 {
		ground = 1
	}
	last := &w.state.last[field*len(w.hist.base.objects)+o.index]
	acc := int64(0)
	for k := range f.N {
		acc += fixed.Abs(o.speeds[k][fromSecond] - o.speeds[k][fromLast])
	}
	turned := fixed.Log2(o.turned)
	y := [lms.Terms]int64{
		placeJerk: fixed.Log2(o.jerk), placeJerk1: fixed.Log2(o.jerk1), placeUnsteady: fixed.Log2(acc), placeSpeed: fixed.Log2(o.speed),
		placeTurned: turned, placeTurned2: turned * turned >> 11, placeLast: int64(*last), placeBias: lms.Bias,
	}
	if o.near != nil {
		y[placeNear], y[placeGap] = fixed.Log2(o.near.place1), o.gap
	} else {
		y[placeAlone] = lms.Bias
	}
	unsteady := 64 + o.jerk + o.jerk1/2 + o.speed/16
	var t placeTerms
	var miss [3]int64
	missed := int64(0)
	for k := range f.N {
		base := int64(o.base[at+k]) * 16
		w.placeTerms(&t, m, k, base, anchor)
		copy(t.x[7:], miss[:k])
		guess := fixed.Clamp(base+t.by.Predict(&t.x), int64(f.Lo)*16, int64(f.Hi)*16)

		y[placeMissed], y[placeRested], y[placeFar], y[placeOut] = fixed.Log2(missed), 0, fixed.Log2(t.g), fixed.Log2(t.out)
		if t.rested {
			y[placeRested] = lms.Bias
		}
		y[placeForced] = max(turned, y[placeOut])
		scale := m.scale[k][ground].Predict(&y)
		level := rangecoder.Level(scale)
		sign := k*9 + 3*rangecoder.Sign3(t.x[1]) + rangecoder.Sign3(t.g)
		if anchor {
			sign += 27 * w.low(guess-w.hist.low[k]*16, scale)
		}
		v := (guess + 8) >> 4
		v += w.Int(&m.numbers, level, sign, int64(cur[k])-v)
		w.store(&cur[k], w.bounded(v, f.Lo, f.Hi))

		e := int64(cur[k])*16 - guess
		t.by.Learn(&t.x, e, unsteady+fixed.Abs(e))
		m.scale[k][ground].Adapt(&y, fixed.Log2(e)-scale)
		if anchor && o.pose.known {
			s := &m.size[k]
			s.learn(s.above(&o.pose.base, k, base), int64(cur[k])*16-base, o.pose.now.extent(k)-o.pose.base.extent(k))
		}
		miss[k] = e
		missed += fixed.Abs(e)
	}
	*last = int16(fixed.Log2(missed))
	if anchor {
		o.miss, o.missed = miss, missed
	}
}

// placeTerms fills in the terms of component k, which is base in Q4.
func (w *walk) placeTerms(t *placeTerms, m *motionModel, k int, base int64, anchor bool) {
	o := &w.object
	v := &o.speeds[k]
	g := v[fromThird]
	t.g, t.out, t.rested, t.by = g, 0, o.class == 3, &m.place[k][o.class]
	t.x = [lms.Terms]int64{g, v[fromFirst] - g, v[firstFromSecond] - g, g - v[thirdFromLast], 160}
	if o.near != nil {
		t.x[5] = o.near.miss[k]
	}
	if !anchor {
		return
	}
	if t.out = max(0, w.hist.low[k]*16-base-g); o.pose.known {
		t.out = max(0, -m.size[k].above(&o.pose.now, k, base+g))
	}
	t.x[6] = t.out
	if o.pose.known && o.pose.ground >= 0 {
		w.rolls(m, t, k, base)
	} else if t.out > 0 && !t.rested {
		t.by = &m.place[k][6]
	}
}

// low tells how far above the lowest object a guess is, of a miss as large as scale says: far, near or very near.
func (w *walk) low(above, scale int64) int {
	reach := int64(16) << fixed.Clamp(scale/fixed.LogOne+1, 0, 20)
	switch {
	case above < reach/4:
		return 2
	case above < reach:
		return 1
	}
	return 0
}
