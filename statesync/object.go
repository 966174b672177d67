package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

// neighbors is how many of the objects coded last are looked at for the nearest.
const neighbors = 32

// near is what an object leaves for those coded after it.
type near struct {
	place  [3]int64
	miss   [snapshot.MaxFields][3]int64 // Q4; of orientations Q30, in radians
	missed [snapshot.MaxFields]int64    // logarithms
}

// object is what is computed of one while its fields are coded.
type object struct {
	job     *job
	to      note
	elapsed int64 // ticks since the baseline
	near    *near
	here    near
}

// update codes one update into to.
func (w *walk) update(j *job, to note) {
	s := w.out.state
	start := w.used()
	clear(to.trend)
	clear(to.miss)
	if !w.decoding && !j.gone {
		copy(to.row, j.row)
	}
	known := 0
	if j.has {
		known = 1
	}
	if j.gone = w.bit(&s.gone[known], j.gone); j.gone {
		clear(to.row)
		j.bits = w.used() - start
		return
	}
	if j.has && w.bit(&s.reborn, !w.decoding && j.object.Generation != j.base.object.Generation) {
		j.has = false
	} else if j.has {
		j.object.Generation = j.base.object.Generation
		w.object = object{job: j, to: to}
		w.against(&w.object)
		j.bits = w.used() - start
		return
	}
	j.object.Generation = uint8(w.raw(uint64(j.object.Generation), 8))
	w.whole(to.row)
	j.bits = w.used() - start
}

// against codes an object against its baseline.
func (w *walk) against(o *object) {
	s, j, to := w.out.state, o.job, o.to
	if w.decoding {
		copy(to.row, j.base.row)
	}
	ctx := 0
	if w.plan.rests(j.base.row) {
		ctx = 1
	}
	zero := w.plan.zero(j.base.row)
	if zero {
		ctx |= 2
	}
	copy(to.miss, j.base.miss)
	if w.bit(&s.same[ctx][w.age(j.base.seq)], slices.Equal(to.row, j.base.row)) {
		return
	}
	w.codeFlags(o, ctx)
	was := 0
	if zero {
		was = 1
	}
	if len(w.plan.still) > 0 {
		zero = w.bit(&s.zero[was], w.plan.zero(to.row))
	}
	o.elapsed = clamp(w.out.tick-j.base.tick, 1, 120)
	w.nearest(o)
	for _, i := range w.plan.order {
		f, m := &w.plan.fields[i], &s.fields[i]
		cur, base := to.row[f.at:f.at+f.N], j.base.row[f.at:f.at+f.N]
		if zero && slices.Contains(w.plan.still, i) {
			clear(cur)
			continue
		}
		if w.bit(&m.kept[was], slices.Equal(cur, base)) {
			continue
		}
		if f.Kind == snapshot.Quat {
			w.codeQuat(i, o, cur, base)
		} else {
			w.codeMotion(i, o, cur, base)
		}
	}
	w.near = append(w.near, o.here)
}

func (w *walk) codeFlags(o *object, ctx int) {
	s := w.out.state
	for n, i := range w.plan.flags {
		f := &w.plan.fields[i]
		at, v := f.at, o.job.base.row[f.at]
		if !w.bit(&s.flags[n][ctx], o.to.row[at] != v) {
			continue
		}
		if int64(f.Hi)-int64(f.Lo) == 1 {
			o.to.row[at] = f.Lo + f.Hi - v
			continue
		}
		o.to.row[at] = w.plain(o.to.row[at], f.Lo, f.Hi)
	}
}

// plain codes a component between bounds, each value alike.
func (w *walk) plain(v, lo, hi int32) int32 {
	x := w.raw(uint64(int64(v)-int64(lo)), uint(bits.Len32(uint32(hi-lo))))
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

// nearest finds, of the objects coded last, the one whose baseline was nearest.
func (w *walk) nearest(o *object) {
	if w.plan.anchor < 0 {
		return
	}
	f := &w.plan.fields[w.plan.anchor]
	for k := range f.N {
		o.here.place[k] = int64(o.job.base.row[f.at+k])
	}
	least := int64(-1)
	for i := max(0, len(w.near)-neighbors); i < len(w.near); i++ {
		d := int64(0)
		for k := range f.N {
			d += abs(w.near[i].place[k] - o.here.place[k])
		}
		if least < 0 || d < least {
			least, o.near = d, &w.near[i]
		}
	}
}

// whole codes an object that has no baseline.
func (w *walk) whole(row []int32) {
	s, p := w.out.state, w.plan
	zero := false
	if len(p.still) > 0 {
		zero = w.bit(&s.zero[2], p.zero(row))
	}
	for i := range p.fields {
		f := &p.fields[i]
		cur := row[f.at : f.at+f.N]
		if zero && slices.Contains(p.still, i) {
			clear(cur)
			continue
		}
		if i == p.anchor && w.sees && w.bit(&s.near[0], !w.decoding && w.novel && w.shorter(f, cur)) {
			for k := range cur {
				cur[k] = w.bounded(w.eye[k]+w.number(&s.whole, 2*bits.Len32(uint32(f.Hi-f.Lo))-8, 0, int64(cur[k])-w.eye[k]), f.Lo, f.Hi)
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
		need += bits.Len64(uint64(abs(int64(cur[k])-w.eye[k]))) + 3
	}
	return need < len(cur)*bits.Len32(uint32(f.Hi-f.Lo))
}
