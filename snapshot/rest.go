package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/fixed"
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
func (pc *payloadCodec) resting(index int, near int64) {
	o := &pc.object
	o.close = near
	o.index, o.base = index, pc.refs.base.Row(index)
	o.moved, o.pace, o.still, o.age = 0, 0, true, int64(pc.state.rested[index])
}

// settled says whether an object of the baseline is at rest.
func (pc *payloadCodec) settled(index int) bool { return pc.state.rested[index] >= settling }

// age notes how many snapshots the object has rested.
func (pc *payloadCodec) age(changed bool) {
	o, v := &pc.object, int64(0)
	if !changed {
		v = min(o.age+pc.refs.distance, oldest)
	}
	pc.state.rested[o.index] = int16(v)
}

// codeStill codes the objects at rest: one by one where another one is near or a flag may fall, the others together.
func (pc *payloadCodec) codeStill(pairs []pair, cur *Set) bool {
	if len(pc.still) == 0 {
		return true
	}
	pc.moving.spread(pc.state.touch)
	quiet := pc.still[:0]
	for _, i := range pc.still {
		base := int(pairs[i].base)
		row := pc.refs.base.Row(base)
		near := pc.closest(row)
		if near > pc.state.touch && (pc.flagOf(row) == 0 || pc.state.rested[base] >= ages*ageStep) {
			quiet = append(quiet, i)
			continue
		}
		pc.resting(base, near)
		if pc.code(cur.Row(int(i))); pc.bad {
			return false
		}
	}
	return pc.codeQuiet(quiet, pairs, cur)
}

// closest gives how near something that moves comes to an object at rest, logarithm.
func (pc *payloadCodec) closest(row []int32) int64 {
	if pc.schema.anchor < 0 {
		return nowhere
	}
	place := pc.schema.place(row)
	if !pc.moving.near(&place) {
		return nowhere
	}
	return fixed.Log2(pc.moving.closest(&place))
}

// codeQuiet codes objects of which few change, if any.
func (pc *payloadCodec) codeQuiet(list []int32, pairs []pair, cur *Set) bool {
	if len(list) == 0 {
		return true
	}
	some := pc.Bit(&pc.state.quiet[0], pc.anyChange(list, pairs, cur))
	for len(list) > 0 {
		block := list[:min(len(list), quietBlock)]
		list = list[len(block):]
		here := some && pc.Bit(&pc.state.quiet[1], pc.anyChange(block, pairs, cur))
		for j, i := range block {
			base := int(pairs[i].base)
			if here && pc.Bit(&pc.state.quiet[2], pc.anyChange(block[j:j+1], pairs, cur)) {
				pc.resting(base, nowhere)
				if pc.code(cur.Row(int(i))); pc.bad {
					return false
				}
				continue
			}
			pc.state.rested[base] = int16(min(int64(pc.state.rested[base])+pc.refs.distance, oldest))
			if pc.Decoding && !pc.same {
				copy(cur.Row(int(i)), pc.refs.base.Row(base))
			}
		}
	}
	return true
}

// anyChange says, to an encoder, whether one of the objects changes.
func (pc *payloadCodec) anyChange(list []int32, pairs []pair, cur *Set) bool {
	if pc.Decoding {
		return false
	}
	for _, i := range list {
		if !slices.Equal(cur.Row(int(i)), pc.refs.base.Row(int(pairs[i].base))) {
			return true
		}
	}
	return false
}

// closeness is the context of whether an object at rest changes.
func (o *objectContext) closeness() int {
	return int(fixed.Clamp((o.close+fixed.LogOne)*2/fixed.LogOne+1, 1, closes-1))
}

// touched learns how far away the others are that set an object in motion: one in 64 is farther than touch.
func (pc *payloadCodec) touched() {
	t, far := &pc.state.touch, pc.object.close
	if far > *t {
		*t += 64
	} else {
		*t -= 1 + max(0, *t-far-4*fixed.LogOne)>>5
	}
}
