package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

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

// objects codes the list of objects. It reports false for a list that no encoder writes.
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

// match finds the objects of cur in the baseline, and returns how many are in it, and how many are
// not.
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

// codeAdded codes n objects that are not in the baseline, each id relative to the previous one.
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
