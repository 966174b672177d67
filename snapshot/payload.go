package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/schema"
)

// objects codes the list of objects and sets pairs to it. It reports false for a list that no
// encoder writes.
func (pc *payloadCodec) objects(pairs []pair, cur *Set) ([]pair, bool) {
	pairs = pairs[:0]
	base := pc.refs.base
	if !pc.Decoding {
		pairs = match(pairs, base, cur)
	}
	kept, born := 0, 0
	for _, p := range pairs {
		if p.base >= 0 {
			kept++
		} else {
			born++
		}
	}
	gone := pc.Bit(&pc.state.removed[0], kept < base.Len())
	if gone {
		pairs = pc.codeRemoved(pairs)
	} else if pc.Decoding {
		pairs = same(pairs, base)
	}
	n := pc.Uint(&pc.state.added, addedLevel, uint64(born))
	if n > MaxObjects || pc.Decoding && n+uint64(len(pairs)) > MaxObjects {
		pc.invalid = malformed.ErrCount
		return pairs, false
	}
	born = int(n)
	pc.sameSet = !gone && born == 0
	return pc.codeAdded(pairs, born)
}

// same appends the objects of base, paired with themselves.
func same(pairs []pair, base *Set) []pair {
	for i, o := range base.objects {
		pairs = append(pairs, pair{o, int32(i)})
	}
	return pairs
}

func match(pairs []pair, base, cur *Set) []pair {
	if cur.sameObjects(base) && slices.Equal(cur.objects, base.objects) {
		return same(pairs, base)
	}
	k := 0
	for _, o := range cur.objects {
		pairs = append(pairs, pair{o, base.follow(&k, o)})
	}
	return pairs
}

func (pc *payloadCodec) codeRemoved(pairs []pair) []pair {
	k := 0
	for i, o := range pc.refs.base.objects {
		for !pc.Decoding && k < len(pairs) && pairs[k].object.ID < o.ID {
			k++
		}
		kept := k < len(pairs) && pairs[k].base == int32(i)
		if !pc.Bit(&pc.state.removed[1], !kept) && pc.Decoding {
			pairs = append(pairs, pair{o, int32(i)})
			k = len(pairs)
		}
	}
	return pairs
}

// codeAdded codes n objects that are not in the baseline, each id as the difference from the
// previous one.
func (pc *payloadCodec) codeAdded(pairs []pair, n int) ([]pair, bool) {
	before, i := int64(-1), 0
	for range n {
		var o Object
		if !pc.Decoding {
			for pairs[i].base >= 0 {
				i++
			}
			o = pairs[i].object
			i++
		}
		id := before + 1 + int64(pc.Uint(&pc.state.gap, gapLevel, uint64(int64(o.ID)-before-1)))
		if id > 1<<16-1 {
			return pairs, false
		}
		o.ID, o.Generation = uint16(id), uint8(pc.Raw(uint64(o.Generation), 8))
		before = id
		if !pc.Decoding {
			continue
		}
		for i < len(pairs) && pairs[i].object.ID < o.ID {
			i++
		}
		if i < len(pairs) && pairs[i].object.ID == o.ID {
			return pairs, false
		}
		pairs = slices.Insert(pairs, i, pair{o, -1})
	}
	return pairs, true
}

// rows codes the components of all objects. Objects at rest come last, when the positions of those
// that move are known.
func (pc *payloadCodec) rows(pairs []pair, cur *Set) bool {
	pc.nearby, pc.resting, pc.changes, pc.Bad = pc.nearby[:0], pc.resting[:0], 0, false
	pc.moving.reset()
	switch {
	case pc.Decoding && pc.sameSet:
		cur.CopyFrom(pc.refs.base)
	case pc.Decoding:
		for _, p := range pairs {
			cur.push(p.object)
		}
	}
	pc.initGround()
	for i, p := range pairs {
		switch {
		case p.base < 0:
			pc.codeAbsolute(cur.Row(i))
		case pc.isResting(int(p.base)):
			pc.resting = append(pc.resting, int32(i))
		default:
			pc.load(int(p.base))
			pc.code(cur.Row(i))
		}
		if pc.Bad {
			return false
		}
	}
	return pc.codeResting(pairs, cur)
}

// codeAbsolute codes an object that is not in the baseline.
func (pc *payloadCodec) codeAbsolute(row []int32) {
	for i := range pc.schema.fields {
		f := &pc.schema.fields[i]
		cur := row[pc.schema.at[i] : pc.schema.at[i]+f.N]
		if f.Class == schema.ClassBytes {
			pc.Bytes(cur, f.Lo, f.Hi)
			continue
		}
		for k, v := range cur {
			lo, hi := f.bounds(k)
			pc.Store(&cur[k], pc.Uniform(v, lo, hi))
		}
	}
}

// mask codes which sets before the baseline are known.
func (pc *payloadCodec) mask(known uint32) (mask uint32) {
	for i := range maxLag {
		if pc.Bit(&pc.state.known, known>>i&1 != 0) {
			mask |= 1 << i
		}
	}
	return mask
}

// updateObjects reorders the state of single objects from the baseline's to the coded ones.
func (pc *payloadCodec) updateObjects(pairs []pair) {
	if pc.sameSet {
		return
	}
	to, old := resize(pc.spare, len(pairs)), pc.state.rested
	for i, p := range pairs {
		to[i] = 0
		if p.base >= 0 {
			to[i] = old[p.base]
		}
	}
	pc.state.rested, pc.spare = to, old
	n, from := len(pc.schema.fields), len(pc.refs.base.objects)
	to = resize(pc.spare, n*len(pairs))
	for f := range n {
		for i, p := range pairs {
			v := int16(0)
			if p.base >= 0 {
				v = pc.state.last[f*from+int(p.base)]
			}
			to[f*len(pairs)+i] = v
		}
	}
	pc.state.last, pc.spare = to, pc.state.last
}
