package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/schema"
)

// object is what is computed of one while its fields are coded.
type object struct {
	to, base   *record
	now, was   []int32 // their rows
	learned    []int32 // the baseline's
	elapsed    int64   // ticks since the baseline
	here, near int     // in around; near is -1 if there is none
}

// update codes what becomes of an object, whose id is known to both ends: into to, against base or, where that is nil, whole.
// At the sender row is its state.
func (w *walk) update(to, base *record, row []int32) {
	s := w.out.state
	known := 0
	if base != nil {
		known = 1
	}
	if !w.Decoding && !to.gone {
		copy(to.row(), row)
	}
	if to.gone = w.Bit(&s.gone[known], to.gone); to.gone {
		clear(to.row())
		return
	}
	if base != nil && !w.Bit(&s.reborn, !w.Decoding && to.object.Generation != base.object.Generation) {
		to.object.Generation = base.object.Generation
		w.against(to, base)
	} else {
		to.object.Generation = uint8(w.Raw(uint64(to.object.Generation), 8))
		w.whole(to.row())
	}
	to.zero = w.plan.zero(to.row())
	to.rests = w.plan.rests(to.row(), to.zero)
}

// against codes an object against its baseline.
func (w *walk) against(to, base *record) {
	s := w.out.state
	o := &w.object
	o.to, o.base, o.now, o.was, o.learned = to, base, to.row(), base.row(), base.learned()
	if w.Decoding {
		copy(o.now, o.was)
	}
	ctx, was := 0, 0
	if base.rests {
		ctx = 1
	}
	if base.zero {
		ctx, was = ctx|2, 1
	}
	copy(to.learned()[w.plan.trends:], o.learned[w.plan.trends:])
	if w.Bit(&s.same[ctx][w.age(base.seq)], slices.Equal(o.now, o.was)) {
		return
	}
	w.codeFlags(to, base, ctx)
	w.codeTexts(to, base, ctx)
	zero := base.zero
	if len(w.plan.still) > 0 {
		zero = w.Bit(&s.zero[was], w.plan.zero(o.now))
	}
	o.elapsed = fixed.Clamp(w.out.tick-base.tick, 1, 120)
	o.here, o.near = w.around.open(w.place(o.was))
	for _, i := range w.plan.order {
		f, m := &w.plan.fields[i], &s.fields[i]
		cur, old := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
		if zero && f.still {
			clear(cur)
			continue
		}
		if w.Bit(&m.kept[was], slices.Equal(cur, old)) {
			continue
		}
		if f.Class == schema.ClassQuat {
			w.codeQuat(i, o, cur, old)
		} else {
			w.codeMotion(i, o, cur, old)
		}
	}
	w.around.n++
}

// place is where a row has its object.
func (w *walk) place(row []int32) (at [3]int64) {
	if w.plan.anchor < 0 {
		return at
	}
	f := &w.plan.fields[w.plan.anchor]
	for k := range f.N {
		at[k] = int64(row[f.at+k])
	}
	return at
}

func (w *walk) codeFlags(to, base *record, ctx int) {
	s := w.out.state
	for n, i := range w.plan.flags {
		f := &w.plan.fields[i]
		at, v := f.at, base.row()[f.at]
		if !w.Bit(&s.flags[n][ctx], to.row()[at] != v) {
			continue
		}
		if int64(f.Hi)-int64(f.Lo) == 1 {
			to.row()[at] = f.Lo + f.Hi - v
			continue
		}
		to.row()[at] = w.plain(to.row()[at], f.Lo, f.Hi)
	}
}

// plain codes a component between bounds, each value alike.
func (w *walk) plain(v, lo, hi int32) int32 {
	x := w.Raw(uint64(int64(v)-int64(lo)), uint(bits.Len32(uint32(hi-lo))))
	return w.bounded(int64(lo)+int64(x), lo, hi)
}

// bounded notes a component that is out of its bounds.
func (w *walk) bounded(v int64, lo, hi int32) int32 {
	if v < int64(lo) || v > int64(hi) {
		w.bad = true
		return lo
	}
	return int32(v)
}

// whole codes an object that has no baseline.
func (w *walk) whole(row []int32) {
	s, p := w.out.state, w.plan
	zero := false
	if len(p.still) > 0 {
		zero = w.Bit(&s.zero[2], p.zero(row))
	}
	for i := range p.fields {
		f := &p.fields[i]
		cur := row[f.at : f.at+f.N]
		if zero && f.still {
			clear(cur)
			continue
		}
		if f.Class == schema.ClassBytes {
			w.wholeText(f, cur)
			continue
		}
		if i == p.anchor && w.sees && w.Bit(&s.near, !w.Decoding && w.shorter(f, cur)) {
			for k := range cur {
				d := w.rare(rarePlace, int64(cur[k])-w.eye[k])
				cur[k] = w.bounded(w.eye[k]+d, f.Lo, f.Hi)
			}
			continue
		}
		for k := range cur {
			lo, hi := f.bounds(k)
			cur[k] = w.plain(cur[k], lo, hi)
		}
	}
}

// shorter says whether a place takes fewer bits from the viewer's than by itself: two or three of a number go for its
// length, and one for its sign.
func (w *walk) shorter(f *field, cur []int32) bool {
	need := 0
	for k := range cur {
		need += bits.Len64(uint64(fixed.Abs(int64(cur[k])-w.eye[k]))) + 3
	}
	return need < len(cur)*bits.Len32(uint32(f.Hi-f.Lo))
}
