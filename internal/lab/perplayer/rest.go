package perplayer

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// restAfter is the number of unchanged snapshots after which an object is at rest.
const restAfter = 6

// noneNear is the distance of objects for which no moving object is searched.
const noneNear = 60 * fixed.LogOne

// quietBlock is the number of undisturbed objects that share one decision.
const quietBlock = 32

// loadResting loads an object at rest. near is log2 of the distance to the nearest moving object.
func (pc *payloadCodec) loadResting(index int, near int64) {
	o := &pc.object
	o.close = near
	o.index, o.base = index, pc.refs.base.row(index)
	o.moved, o.speedContext, o.resting, o.age = 0, 0, true, int64(pc.state.rested[index])
}

func (pc *payloadCodec) isResting(index int) bool { return pc.state.rested[index] >= restAfter }

func (pc *payloadCodec) updateAge(changed bool) {
	o, v := &pc.object, int64(0)
	if !changed {
		v = min(o.age+pc.refs.distance, oldest)
	}
	pc.state.rested[o.index] = int16(v)
}

// codeResting codes objects at rest: in blocks, unless one that moves is near or a flag may change.
func (pc *payloadCodec) codeResting(pairs []pair, cur *set) {
	if len(pc.resting) == 0 {
		return
	}
	pc.moving.spread(pc.state.contactRange)
	quiet := pc.resting[:0]
	for _, i := range pc.resting {
		base := int(pairs[i].base)
		row := pc.refs.base.row(base)
		near := pc.closest(row)
		if near > pc.state.contactRange && (pc.flagOf(row) == 0 || pc.state.rested[base] >= ageContexts*ageStep) {
			quiet = append(quiet, i)
			continue
		}
		pc.loadResting(base, near)
		pc.code(cur.row(int(i)))
	}
	if len(quiet) > 0 {
		pc.codeQuiet(quiet, pairs, cur)
	}
}

// closest returns log2 of the distance from an object at rest to the nearest moving one.
func (pc *payloadCodec) closest(row []int32) int64 {
	if pc.schema.anchor < 0 {
		return noneNear
	}
	position := pc.schema.position(row)
	if !pc.moving.near(&position) {
		return noneNear
	}
	return fixed.Log2(pc.moving.closest(&position))
}

// codeQuiet codes objects of which few change.
func (pc *payloadCodec) codeQuiet(list []int32, pairs []pair, cur *set) {
	some := pc.Bit(&pc.state.quiet[0], pc.anyChanged(list, pairs, cur))
	for len(list) > 0 {
		block := list[:min(len(list), quietBlock)]
		list = list[len(block):]
		here := some && pc.Bit(&pc.state.quiet[1], pc.anyChanged(block, pairs, cur))
		for j, i := range block {
			base := int(pairs[i].base)
			if here && pc.Bit(&pc.state.quiet[2], pc.anyChanged(block[j:j+1], pairs, cur)) {
				pc.loadResting(base, noneNear)
				pc.code(cur.row(int(i)))
				continue
			}
			pc.state.rested[base] = int16(min(int64(pc.state.rested[base])+pc.refs.distance, oldest))
		}
	}
}

func (pc *payloadCodec) anyChanged(list []int32, pairs []pair, cur *set) bool {
	return slices.ContainsFunc(list, func(i int32) bool {
		return !slices.Equal(cur.row(int(i)), pc.refs.base.row(int(pairs[i].base)))
	})
}

// contactContext is the context for whether an object at rest changes.
func (o *objectContext) contactContext() int {
	return int(fixed.Clamp((o.close+fixed.LogOne)*2/fixed.LogOne+1, 1, contactContexts-1))
}

// learnContact adapts the distance of contacts such that one in 64 is farther.
func (pc *payloadCodec) learnContact() {
	t, far := &pc.state.contactRange, pc.object.close
	if far > *t {
		*t += 64
	} else {
		*t -= 1 + max(0, *t-far-4*fixed.LogOne)>>5
	}
}
