package snapshot

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

// quietBlock is the number of undisturbed objects that share one decision.
const quietBlock = 32

// findMoving sets pc.moves for the objects of the baseline that differ in the first or the last
// reference. All others are at rest.
func (pc *payloadCodec) findMoving() {
	h := &pc.refs
	pc.moves = sized(pc.moves, h.base.Len())
	if h.step == 0 {
		return
	}
	mark := func(row int) { pc.moves[row] = true }
	for _, i := range [...]int{0, refs - 1} {
		switch r := &h.frames[i]; {
		case r.same && h.base.packed != nil:
			eachDifferent(h.base.packed, r.set.packed, pc.schema.packing.Words(), mark)
		case r.same:
			eachDifferent(h.base.ints, r.set.ints, pc.schema.ints, mark)
		default:
			for k := range r.at {
				pc.moves[k] = pc.moves[k] || h.differs(i, k)
			}
		}
	}
}

// findChanged sets pc.changed for the objects of cur that differ from the baseline.
func (pc *payloadCodec) findChanged(cur *Set) {
	base := pc.refs.base
	pc.changed = sized(pc.changed, cur.Len())
	if pc.sameSet {
		eachDifferent(cur.ints, base.ints, pc.schema.ints, func(row int) { pc.changed[row] = true })
		return
	}
	for i, p := range pc.pairs {
		pc.changed[i] = p.base < 0 || !cur.sameRow(i, base, int(p.base))
	}
}

// findRecent is findMoving and findChanged for a group, which knows what has changed since the
// oldest reference.
func (pc *payloadCodec) findRecent(cur *Set) {
	h, p := &pc.refs, cur.group
	pc.moves, pc.changed = sized(pc.moves, h.base.Len()), sized(pc.changed, cur.Len())
	oldest := h.base.number - maxLag*uint64(h.step)
	recent := pc.recent[:0]
	for i, slot := range cur.slots {
		at := pc.inBase(i)
		if at < 0 || h.base.slots[at] != slot || p.since(p.changes[slot], oldest) != 0 {
			recent = append(recent, int32(i))
		}
	}
	pc.recent = recent
	if h.step > 0 {
		pc.touch(cur)
	}
	for _, i := range recent {
		at := pc.inBase(int(i))
		if pc.changed[i] = at < 0 || !cur.sameRow(int(i), h.base, at); at >= 0 && h.step > 0 {
			pc.moves[at] = h.differs(0, at) || h.differs(refs-1, at)
		}
	}
}

// touch reads the memory of the rows that findRecent compares next. The processor can then load
// several rows into its cache at the same time.
func (pc *payloadCodec) touch(cur *Set) {
	h, p, sum := &pc.refs, cur.group, int32(0)
	for _, i := range pc.recent {
		slot := cur.slots[i]
		sum += p.row(slot)[0]
		if before := p.before[slot]; before != nil {
			sum += before[p.place(h.base.number)]
			for k := range h.frames {
				sum += before[p.place(h.frames[k].set.number)]
			}
		}
	}
	pc.touched = sum
}

// sized returns n false values, in the memory of b if it has room.
func sized(b []bool, n int) []bool {
	b = slices.Grow(b[:0], n)[:n]
	clear(b)
	return b
}

// eachDifferent calls f for each row in which a and b differ, for some rows twice. A row has width
// elements.
func eachDifferent[T int32 | uint64](a, b []T, width int, f func(row int)) {
	const block = 64
	b = b[:len(a)]
	for from := 0; from < len(a); from += block {
		to := from + block
		if to > len(a) {
			to = len(a)
		} else if *(*[block]T)(a[from:]) == *(*[block]T)(b[from:]) {
			continue
		}
		for i := from; i < to; i++ {
			if a[i] != b[i] {
				row := i / width
				f(row)
				i = row*width + width - 1
			}
		}
	}
}

// codeResting codes the objects at rest. Objects without a moving object nearby and with the first
// flag at its minimum are coded in blocks.
func (pc *payloadCodec) codeResting(cur *Set) {
	if len(pc.resting) == 0 {
		return
	}
	reach := reachOf(pc.contactRange)
	pc.moving.spread(reach)
	quiet := pc.resting[:0]
	s, base := pc.schema, pc.refs.base
	for _, i := range pc.resting {
		var row []int32
		if !pc.Decoding && !pc.changed[i] {
			row = cur.current(int(i)) // equal to the baseline's row, and probably in the processor's cache
		} else {
			row = base.Row(pc.inBase(int(i)))
		}
		near, flag := reach, s.flagOf(row)
		if s.anchor >= 0 {
			if x, y, z := s.position(row); !pc.moving.outside(x, y, z) {
				near = pc.moving.closest(x, y, z)
			}
		}
		if near == reach && flag == 0 {
			quiet = append(quiet, i)
			continue
		}
		contact := noneNear
		if near < reach {
			contact = contactContext(near)
		}
		ctx := pc.schema.layout.disturbed + contact*4 + pc.changes&1<<1 + flag
		if pc.bit(ctx, !pc.Decoding && pc.changed[i]) {
			pc.codeDisturbed(cur, i, contact)
			continue
		}
		pc.changes <<= 1
		pc.keep(cur, i)
	}
	if len(quiet) > 0 {
		pc.codeQuiet(quiet, cur)
	}
}

// reachOf converts physics.contact from a logarithm to a quarter of a squared distance.
func reachOf(contact int64) int64 {
	contact = fixed.Clamp(contact, 0, 45*fixed.LogOne)
	return (fixed.LogOne + contact%fixed.LogOne) << (contact / fixed.LogOne) >> 4
}

// contactContext returns the context of an object at rest, for its decision whether it changed.
// near is a quarter of the squared distance to the nearest moving object, below 2^50. Each octave
// of near has two contexts.
func contactContext(near int64) int {
	x := uint64(near) + 12
	n := bits.Len64(x)
	return 2*n - 7 + int(x>>(n-2)&1)
}

// noneNear is the contact context if no moving object is within reach.
const noneNear = 123

// keep decodes object i as unchanged from the baseline.
func (pc *payloadCodec) keep(cur *Set, i int32) {
	if pc.Decoding && !pc.sameSet {
		copy(cur.Row(int(i)), pc.refs.base.Row(pc.inBase(int(i))))
	}
}

// codeQuiet codes objects that probably did not change: one decision for all, one per block, one
// per object.
func (pc *payloadCodec) codeQuiet(list []int32, cur *Set) {
	at := pc.schema.layout.quiet
	some := pc.bit(at, pc.anyChanged(list))
	for len(list) > 0 {
		block := list[:min(len(list), quietBlock)]
		list = list[len(block):]
		here := some && pc.bit(at+1, pc.anyChanged(block))
		if !here && (!pc.Decoding || pc.sameSet) {
			continue
		}
		for j, i := range block {
			if here && pc.bit(at+2, pc.anyChanged(block[j:j+1])) {
				pc.codeDisturbed(cur, i, noneNear)
				continue
			}
			pc.keep(cur, i)
		}
	}
}

func (pc *payloadCodec) anyChanged(list []int32) bool {
	if pc.Decoding {
		return false
	}
	for _, i := range list {
		if pc.changed[i] {
			return true
		}
	}
	return false
}

// codeDisturbed codes an object at rest that changed. contact is its contact context.
func (pc *payloadCodec) codeDisturbed(cur *Set, i int32, contact int) {
	o, row, base := &pc.object, cur.Row(int(i)), pc.inBase(int(i))
	pc.written = append(pc.written, i)
	o.index, o.base = base, pc.refs.base.Row(base)
	o.moved, o.speedContext, o.resting = 0, 0, true
	if pc.Decoding && !pc.sameSet {
		copy(row, o.base)
	}
	o.flag = pc.schema.flagOf(o.base)
	moved := false
	pc.changes <<= 1
	if len(pc.schema.order) > 0 {
		if moved = pc.bit(pc.schema.layout.how+2*contact+o.flag, !pc.Decoding && pc.schema.differ(row, o.base)); moved {
			pc.changes |= 1
		}
	}
	pc.codeKept(row, moved)
	if !moved {
		return
	}
	pc.references()
	pc.codeMoved(row)
}

// pair is an object of the snapshot and its index in the baseline, or -1.
type pair struct {
	object Object
	base   int32
}

// inBase returns the index in the baseline of object i, or -1.
func (pc *payloadCodec) inBase(i int) int {
	if pc.sameSet {
		return i
	}
	return int(pc.pairs[i].base)
}

// objects codes the list of objects. It reports false and sets pc.invalid for a list that no
// encoder writes.
func (pc *payloadCodec) objects(cur *Set) bool {
	pc.pairs = pc.pairs[:0]
	base, l := pc.refs.base, &pc.schema.layout
	kept, born := base.Len(), 0
	if pc.sameSet = pc.Decoding || cur.SameObjects(base); !pc.sameSet {
		kept, born = pc.match(cur)
	}
	pc.leftOut = 0
	if pc.oldOnly {
		born, pc.leftOut = 0, born
	}
	gone := pc.bit(l.removed, kept < base.Len())
	if gone {
		pc.codeRemoved()
	}
	n := pc.count(l.added, addedLevel, uint64(born))
	if pc.Decoding {
		if gone {
			kept = len(pc.pairs)
		}
		if n+uint64(kept) > MaxObjects {
			pc.invalid = malformed.ErrCount
			return false
		}
		pc.sameSet = !gone && n == 0
		if !gone && n > 0 {
			for i, o := range base.objects {
				pc.pairs = append(pc.pairs, pair{o, int32(i)})
			}
		}
	}
	return pc.codeAdded(int(n))
}

// match sets pc.pairs and returns the numbers of objects of cur that are in the baseline (kept) and
// not in it (born).
func (pc *payloadCodec) match(cur *Set) (kept, born int) {
	k := 0
	for _, o := range cur.objects {
		p := pair{o, follow(pc.refs.base.objects, &k, o)}
		if p.base < 0 {
			born++
		}
		pc.pairs = append(pc.pairs, p)
	}
	return len(pc.pairs) - born, born
}

// codeRemoved codes which objects of the baseline are kept.
func (pc *payloadCodec) codeRemoved() {
	k := 0
	for i, o := range pc.refs.base.objects {
		for !pc.Decoding && k < len(pc.pairs) && pc.pairs[k].object.ID < o.ID {
			k++
		}
		kept := k < len(pc.pairs) && pc.pairs[k].base == int32(i)
		if !pc.bit(pc.schema.layout.removed+1, !kept) && pc.Decoding {
			pc.pairs = append(pc.pairs, pair{o, int32(i)})
			k = len(pc.pairs)
		}
	}
}

// codeAdded codes n objects that are not in the baseline, each id relative to the previous one. It
// reports false for invalid ids.
func (pc *payloadCodec) codeAdded(n int) bool {
	before, i := int64(-1), 0
	for range n {
		var o Object
		if !pc.Decoding {
			for pc.pairs[i].base >= 0 {
				i++
			}
			o = pc.pairs[i].object
			i++
		}
		id := before + 1 + int64(pc.count(pc.schema.layout.gap, gapLevel, uint64(int64(o.ID)-before-1)))
		if id > 1<<16-1 {
			return false
		}
		o.ID, o.Generation = uint16(id), uint8(pc.Raw(uint64(o.Generation), 8))
		before = id
		if !pc.Decoding {
			continue
		}
		for i < len(pc.pairs) && pc.pairs[i].object.ID < o.ID {
			i++
		}
		if i < len(pc.pairs) && pc.pairs[i].object.ID == o.ID {
			return false
		}
		pc.pairs = slices.Insert(pc.pairs, i, pair{o, -1})
	}
	return true
}
