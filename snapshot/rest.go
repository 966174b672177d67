package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// Objects at rest are told apart by how close another one came, in quarters of an octave, and how long they have rested.
const (
	closes  = 128
	ages    = 64
	ageStep = 4 // snapshots
	oldest  = 1 << 14
)

// settling is how many snapshots an object does not change until it counts as at rest.
const settling = 6

// nowhere is how close something comes to an object that is not looked for.
const nowhere = 60 * fixed.LogOne

// quietBlock is how many objects at rest that nothing comes near share a decision.
const quietBlock = 32

// resting loads an object that rests, and to which something that moves comes so near.
func (w *walk) resting(index int, near int64) {
	o := &w.object
	o.close = near
	o.index, o.base = index, w.hist.base.Row(index)
	o.moved, o.pace, o.still, o.age = 0, 0, true, int64(w.state.rested[index])
}

// settled says whether an object of the baseline is at rest.
func (w *walk) settled(index int) bool { return w.state.rested[index] >= settling }

// age notes how many snapshots the object has rested.
func (w *walk) age(changed bool) {
	o, v := &w.object, int64(0)
	if !changed {
		v = min(o.age+w.hist.distance, oldest)
	}
	w.state.rested[o.index] = int16(v)
}

// codeStill codes the objects at rest: one by one where another one is near or a flag may fall, the others together.
func (w *walk) codeStill(pairs []pair, cur *Set) bool {
	if len(w.still) == 0 {
		return true
	}
	w.movers.spread(w.state.touch)
	quiet := w.still[:0]
	for _, i := range w.still {
		base := int(pairs[i].base)
		row := w.hist.base.Row(base)
		near := w.closest(row)
		if near > w.state.touch && (w.flagOf(row) == 0 || w.state.rested[base] >= ages*ageStep) {
			quiet = append(quiet, i)
			continue
		}
		w.resting(base, near)
		if w.code(cur.Row(int(i))); w.bad {
			return false
		}
	}
	return w.codeQuiet(quiet, pairs, cur)
}

// closest gives how near something that moves comes to an object at rest, logarithm.
func (w *walk) closest(row []int32) int64 {
	if w.schema.anchor < 0 {
		return nowhere
	}
	place := w.schema.place(row)
	if !w.movers.near(&place) {
		return nowhere
	}
	return fixed.Log2(w.movers.closest(&place))
}

// codeQuiet codes objects of which few change, if any.
func (w *walk) codeQuiet(list []int32, pairs []pair, cur *Set) bool {
	if len(list) == 0 {
		return true
	}
	some := w.Bit(&w.state.quiet[0], w.anyChange(list, pairs, cur))
	for len(list) > 0 {
		block := list[:min(len(list), quietBlock)]
		list = list[len(block):]
		here := some && w.Bit(&w.state.quiet[1], w.anyChange(block, pairs, cur))
		for j, i := range block {
			base := int(pairs[i].base)
			if here && w.Bit(&w.state.quiet[2], w.anyChange(block[j:j+1], pairs, cur)) {
				w.resting(base, nowhere)
				if w.code(cur.Row(int(i))); w.bad {
					return false
				}
				continue
			}
			w.state.rested[base] = int16(min(int64(w.state.rested[base])+w.hist.distance, oldest))
			if w.Decoding && !w.same {
				copy(cur.Row(int(i)), w.hist.base.Row(base))
			}
		}
	}
	return true
}

// anyChange says, to an encoder, whether one of the objects changes.
func (w *walk) anyChange(list []int32, pairs []pair, cur *Set) bool {
	if w.Decoding {
		return false
	}
	for _, i := range list {
		if !slices.Equal(cur.Row(int(i)), w.hist.base.Row(int(pairs[i].base))) {
			return true
		}
	}
	return false
}

// closeness is the context of whether an object at rest changes.
func (o *object) closeness() int {
	return int(fixed.Clamp((o.close+fixed.LogOne)*2/fixed.LogOne+1, 1, closes-1))
}

// touched learns how far away the others are that set an object in motion: one in 64 is farther than touch.
func (w *walk) touched() {
	t, far := &w.state.touch, w.object.close
	if far > *t {
		*t += 64
	} else {
		*t -= 1 + max(0, *t-far-4*fixed.LogOne)>>5
	}
}
