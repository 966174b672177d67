package snapshot

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// neighbors is how many of the objects coded last are looked at for the nearest.
const neighbors = 16

// near is what a moving object leaves for those coded after it.
type near struct {
	place        [3]int64
	miss         [3]int64 // Q4
	place1, turn int64    // what the predictions missed by together, Q4
}

// object is what is computed of an object while its fields are coded.
type object struct {
	index  int // in the baseline
	base   []int32
	row    [refs][]int32
	lag    [refs]int64
	moved  int // whether it differs from the first, second and last reference
	class  int
	pace   int   // how far it moved since the last reference, in four steps
	jerk   int64 // of places over the references and over the newest ones, Q4 as all below
	jerk1  int64
	speed  int64
	span   [spans]span
	speeds [3]velocities
	near   *near
	gap    int64 // distance to near, logarithm
	miss   [3]int64
	missed int64 // sum of miss
	flag   int
	pose   pose
	turned int64 // what the prediction of the orientation missed by
	veer   [3]int64
	drift  [3]int64 // of the place, over the coded distance
	still  bool     // at rest
	age    int64    // how many snapshots it has rested
	close  int64    // how near another one comes to it, logarithm
}

// walk codes the objects of a snapshot in either direction.
type walk struct {
	rangecoder.Coder
	schema *Schema
	state  *state  // as it goes on
	from   *state  // as it was beside the baseline
	spare  []int16 // room for the last misses
	same   bool    // what is coded has the objects of the baseline
	fault  error   // what is wrong with the names, if they are
	hist   history
	near   []near
	movers movers
	still  []int32 // places of objects at rest in what is coded
	order  int     // whether the last objects changed, a bit each
	object object
	bad    bool // what was decoded is out of bounds
}

// load prepares an object of the baseline that moved.
func (w *walk) load(index int) {
	o := &w.object
	o.index, o.base = index, w.hist.base.Row(index)
	o.moved, o.pace, o.still, o.age = 0, 0, false, 0
	w.references()
	for i, k := range [...]int{0, 1, refs - 1} {
		if w.schema.differ(o.base, o.row[k]) {
			o.moved |= 1 << i
		}
	}
	if o.moved&1 == 0 {
		for i := 0; i < refs && !w.schema.differ(o.base, o.row[i]); i++ {
			o.age = o.lag[i]
		}
	}
	if w.schema.anchor < 0 {
		return
	}
	at, far := w.schema.at[w.schema.anchor], int64(0)
	for k := at; k < at+w.schema.fields[w.schema.anchor].N; k++ {
		far += fixed.Abs(int64(o.base[k]) - int64(o.row[refs-1][k]))
	}
	o.pace = min(bits.Len64(uint64(far))/2, 3)
}

// references finds the object in them.
func (w *walk) references() {
	o := &w.object
	for i := range o.row {
		o.row[i], o.lag[i] = w.hist.row(i, o.index)
	}
}

// code codes the loaded object into row.
func (w *walk) code(row []int32) {
	o := &w.object
	w.keepRow(row)
	o.flag = w.flagOf(o.base)
	changed := false
	if len(w.schema.order) > 0 {
		c := &w.state.changed[(w.order&3)<<6|o.pace<<4|o.moved<<1|o.flag]
		if o.still {
			c = &w.state.hit[o.closeness()][w.order&1<<1|o.flag]
		}
		changed = w.Bit(c, !w.Decoding && w.schema.differ(row, o.base))
		w.order = w.order << 1
		if changed {
			w.order |= 1
		}
	}
	w.age(changed)
	w.codeFlags(row, changed)
	w.codeStrings(row, changed)
	if !changed {
		return
	}
	if o.still {
		w.references()
		w.touched()
	}
	w.codeMotion(row)
}

// keepRow has a decoded object be as in the baseline.
func (w *walk) keepRow(row []int32) {
	if w.Decoding && !w.same {
		copy(row, w.object.base)
	}
}

// flagOf is whether an object's first field of flags is set.
func (w *walk) flagOf(row []int32) int {
	if len(w.schema.flags) == 0 {
		return 0
	}
	if i := w.schema.flags[0]; row[w.schema.at[i]] == w.schema.fields[i].Lo {
		return 0
	}
	return 1
}

// codeFlags codes each field of flags: kept, or another value.
func (w *walk) codeFlags(row []int32, changed bool) {
	o := &w.object
	for n, i := range w.schema.flags {
		f, at := &w.schema.fields[i], w.schema.at[i]
		v := o.base[at]
		ctx := o.moved
		if changed {
			ctx |= 8
		}
		if v != f.Lo {
			ctx |= 16
		}
		if !o.still && o.row[0][at] != v {
			ctx |= 32
		}
		if !o.still && o.row[refs-1][at] != v {
			ctx |= 64
		}
		c := &w.state.flags[n][ctx]
		if o.still && !changed {
			c = &w.state.settled[n][min(o.age/ageStep, ages-1)][ctx>>4&1]
		}
		if w.Bit(c, row[at] != v) {
			w.store(&row[at], w.other(f, v, row[at]))
		}
	}
}

// other codes a value of the field that is not v.
func (w *walk) other(f *Field, v, to int32) int32 {
	if int64(f.Hi)-int64(f.Lo) == 1 {
		return f.Lo + f.Hi - v
	}
	return int32(int64(f.Lo) + int64(w.Raw(uint64(int64(to)-int64(f.Lo)), f.width())))
}

func (w *walk) codeMotion(row []int32) {
	o := &w.object
	o.miss, o.missed, o.jerk, o.jerk1, o.speed = [3]int64{}, 0, 0, 0, 0
	w.measure()
	w.nearest()
	w.classify()
	w.lies()
	left, some := len(w.schema.order), false
	motion, angles, quats := 0, 0, 0
	var here near
	var now [3]int64
	for _, i := range w.schema.order {
		f, at := &w.schema.fields[i], w.schema.at[i]
		left--
		cur, base := row[at:at+f.N], o.base[at:at+f.N]
		differs := true
		if some || left > 0 {
			ctx := o.moved | o.pace<<4
			if some {
				ctx |= 8
			}
			differs = w.Bit(&w.state.same[i][ctx], !slices.Equal(cur, base))
		}
		some = some || differs
		if f.Kind == Motion {
			if differs {
				w.codePlace(i, &w.state.motion[motion], cur)
			}
			if i == w.schema.anchor {
				for k := range cur {
					here.place[k], now[k] = int64(base[k]), int64(cur[k])
				}
				here.miss, here.place1 = o.miss, o.missed
			}
			motion++
			continue
		}
		if f.Kind == Angle {
			if differs {
				w.codeAngle(i, &w.state.angles[angles], cur)
			}
			angles++
			continue
		}
		if differs {
			here.turn += w.codeQuat(i, quats, cur)
		}
		quats++
	}
	w.near = append(w.near, here)
	w.movers.add(now)
}

// nearest finds, of the objects coded last, the one that was nearest in the baseline.
func (w *walk) nearest() {
	o := &w.object
	o.near = nil
	if w.schema.anchor < 0 || len(w.near) == 0 {
		return
	}
	place, least := w.schema.place(o.base), int64(1)<<62
	for i := max(0, len(w.near)-neighbors); i < len(w.near); i++ {
		if d := quarter(&w.near[i].place, &place); d < least {
			least, o.near = d, &w.near[i]
		}
	}
	o.gap = fixed.Log2(least<<5) / 2
}

// Spans are the pairs of references, or of one and the baseline, that a velocity is taken between: the newer, the older.
const (
	fromFirst = iota // to the baseline
	fromSecond
	fromThird
	fromLast
	firstFromSecond
	secondFromThird
	secondFromFourth
	thirdFromLast
	fourthFromLast
	spans
)

// span is a pair of rows, and what makes their difference one over the coded distance, Q4.
type span struct {
	newer, older []int32
	scale        int64 // by 2^partShift
}

var ends = [spans][2]int{{-1, 0}, {-1, 1}, {-1, 2}, {-1, refs - 1}, {0, 1}, {1, 2}, {1, 3}, {2, refs - 1}, {3, refs - 1}}

// measure finds the object's spans. Where two references are the same one, the span is up to the baseline instead.
func (w *walk) measure() {
	o := &w.object
	for i, e := range ends {
		s := &o.span[i]
		*s = span{newer: o.base, older: o.row[e[1]]}
		lag := o.lag[e[1]]
		if e[0] >= 0 && o.lag[e[0]] != lag {
			s.newer = o.row[e[0]]
			lag -= o.lag[e[0]]
		}
		s.scale = 16 * w.hist.distance * parts[lag&15]
	}
}

// velocities are those of a component over each span.
type velocities [spans]int64

// velocity gives the velocities of component k, Q4 over the coded distance.
func (o *object) velocity(v *velocities, k int) {
	for i := range v {
		s := &o.span[i]
		v[i] = (int64(s.newer[k]) - int64(s.older[k])) * s.scale >> partShift
	}
}

// classify says how steadily the object moved.
func (w *walk) classify() {
	o := &w.object
	o.class, o.drift, o.veer = 0, [3]int64{}, [3]int64{}
	if o.moved == 0 {
		o.class = 3
	}
	if w.schema.anchor < 0 {
		return
	}
	at, n := w.schema.at[w.schema.anchor], w.schema.fields[w.schema.anchor].N
	w.steadiness(at, n)
	for k := range n {
		o.drift[k] = o.speeds[k][fromThird]
		o.veer[k] = o.speeds[k][fromFirst] - o.drift[k]
	}
	if o.moved != 7 {
		return
	}
	const small, large = 5 * 16, 20 * 16
	switch {
	case o.jerk1 >= large:
		o.class = 5
	case o.jerk >= large:
		o.class = 4
	case o.jerk < small && o.jerk1 <= small:
		o.class = 1
	default:
		o.class = 2
	}
}

// steadiness finds how the n components from at on moved.
func (w *walk) steadiness(at, n int) {
	o, part := &w.object, parts[w.hist.distance&63]
	o.jerk, o.jerk1, o.speed = 0, 0, 0
	for k := range n {
		v := &o.speeds[k]
		o.velocity(v, at+k)
		o.jerk += fixed.Abs(v[fromSecond]-2*v[secondFromFourth]+v[fourthFromLast]) * 2
		o.jerk1 += fixed.Abs(v[fromFirst] - 2*v[firstFromSecond] + v[secondFromThird])
		o.speed += fixed.Abs(v[fromSecond])
	}
	o.jerk, o.jerk1 = o.jerk*part>>partShift, o.jerk1*part>>partShift
}

const partShift = 16

// parts are 1 / i, Q16: faster than a division.
var parts = func() (t [64]int64) {
	for i := int64(1); i < int64(len(t)); i++ {
		t[i] = (1<<partShift + i/2) / i
	}
	return t
}()
