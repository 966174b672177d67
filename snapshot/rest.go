package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// noneNear is the distance of objects for which no moving object is searched.
const noneNear = 60 * fixed.LogOne

// quietBlock is the number of undisturbed objects that share one decision.
const quietBlock = 32

// loadResting loads an object at rest. near is log2 of the distance to the nearest moving object.
func (pc *payloadCodec) loadResting(index int, near int64) {
	o := &pc.object
	o.close = near
	o.index, o.base = index, pc.refs.base.Row(index)
	o.moved, o.speedContext, o.resting = 0, 0, true
}

// isResting reports whether an object of the baseline is the same in all references.
func (pc *payloadCodec) isResting(index int) bool {
	if pc.refs.step == 0 {
		return false
	}
	base := pc.refs.base.Row(index)
	for i := range refs {
		if row, lag := pc.refs.row(i, index); lag < int64(References[i])*pc.refs.step || !slices.Equal(base, row) {
			return false
		}
	}
	return true
}

// codeResting codes objects at rest: in blocks, unless one that moves is near or a flag may change.
func (pc *payloadCodec) codeResting(pairs []pair, cur *Set) {
	if len(pc.resting) == 0 {
		return
	}
	pc.moving.spread(pc.contactRange)
	quiet := pc.resting[:0]
	for _, i := range pc.resting {
		base := int(pairs[i].base)
		row := pc.refs.base.Row(base)
		near := pc.closest(row)
		if near > pc.contactRange && pc.flagOf(row) == 0 {
			quiet = append(quiet, i)
			continue
		}
		pc.loadResting(base, near)
		pc.code(cur.Row(int(i)))
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
func (pc *payloadCodec) codeQuiet(list []int32, pairs []pair, cur *Set) {
	some := pc.Bit(&pc.probs.quiet[0], pc.anyChanged(list, pairs, cur))
	for len(list) > 0 {
		block := list[:min(len(list), quietBlock)]
		list = list[len(block):]
		here := some && pc.Bit(&pc.probs.quiet[1], pc.anyChanged(block, pairs, cur))
		for j, i := range block {
			base := int(pairs[i].base)
			if here && pc.Bit(&pc.probs.quiet[2], pc.anyChanged(block[j:j+1], pairs, cur)) {
				pc.loadResting(base, noneNear)
				pc.code(cur.Row(int(i)))
				continue
			}
			if pc.Decoding && !pc.sameSet {
				copy(cur.Row(int(i)), pc.refs.base.Row(base))
			}
		}
	}
}

func (pc *payloadCodec) anyChanged(list []int32, pairs []pair, cur *Set) bool {
	return !pc.Decoding && slices.ContainsFunc(list, func(i int32) bool {
		return !slices.Equal(cur.Row(int(i)), pc.refs.base.Row(int(pairs[i].base)))
	})
}

// contactContext is the context for whether an object at rest changes.
func (o *objectContext) contactContext() int {
	return int(fixed.Clamp((o.close+fixed.LogOne)*2/fixed.LogOne+1, 1, contactContexts-1))
}
