package snapshot

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/schema"
)

// pair is an object of what is coded, and its place in the baseline or -1.
type pair struct {
	object Object
	base   int32
}

// Levels that the numbers of names begin at.
const (
	bornLevel = 0
	gapLevel  = 6
)

// names codes which objects there are and fills pairs with them. It says false for what no encoder writes.
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
	gone := pc.Bit(&pc.state.gone[0], kept < base.Len())
	if gone {
		pairs = pc.codeGone(pairs)
	} else if pc.Decoding {
		pairs = same(pairs, base)
	}
	n := pc.Count(&pc.state.born, bornLevel, uint64(born))
	if n > MaxObjects || pc.Decoding && n+uint64(len(pairs)) > MaxObjects {
		pc.invalid = malformed.ErrCount
		return pairs, false
	}
	born = int(n)
	pc.same = !gone && born == 0
	return pc.codeBorn(pairs, born)
}

// same pairs the objects of base with themselves.
func same(pairs []pair, base *Set) []pair {
	for i, o := range base.objects {
		pairs = append(pairs, pair{o, int32(i)})
	}
	return pairs
}

// match finds the objects of cur in base; both ascend.
func match(pairs []pair, base, cur *Set) []pair {
	if cur.alike(base) && slices.Equal(cur.objects, base.objects) {
		return same(pairs, base)
	}
	k := 0
	for _, o := range cur.objects {
		for k < len(base.objects) && base.objects[k].ID < o.ID {
			k++
		}
		p := pair{o, -1}
		if k < len(base.objects) && base.objects[k] == o {
			p.base = int32(k)
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func (pc *payloadCodec) codeGone(pairs []pair) []pair {
	k := 0
	for i, o := range pc.refs.base.objects {
		for !pc.Decoding && k < len(pairs) && pairs[k].object.ID < o.ID {
			k++
		}
		kept := k < len(pairs) && pairs[k].base == int32(i)
		if !pc.Bit(&pc.state.gone[1], !kept) && pc.Decoding {
			pairs = append(pairs, pair{o, int32(i)})
			k = len(pairs)
		}
	}
	return pairs
}

// codeBorn codes the names of n objects that the baseline has not, each id from the one before it.
func (pc *payloadCodec) codeBorn(pairs []pair, n int) ([]pair, bool) {
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
		id := before + 1 + int64(pc.Count(&pc.state.gap, gapLevel, uint64(int64(o.ID)-before-1)))
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
		pairs = append(pairs, pair{})
		copy(pairs[i+1:], pairs[i:])
		pairs[i] = pair{o, -1}
	}
	return pairs, true
}

// rows codes the components of all objects, those at rest last, when it is known what comes near them.
func (pc *payloadCodec) rows(pairs []pair, cur *Set) bool {
	pc.nearby, pc.still, pc.order, pc.bad = pc.nearby[:0], pc.still[:0], 0, false
	pc.moving.reset()
	switch {
	case pc.Decoding && pc.same:
		cur.CopyFrom(pc.refs.base)
	case pc.Decoding:
		for _, p := range pairs {
			cur.push(p.object)
		}
	}
	pc.level()
	for i, p := range pairs {
		switch {
		case p.base < 0:
			pc.codeWhole(cur.Row(i))
		case pc.settled(int(p.base)):
			pc.still = append(pc.still, int32(i))
		default:
			pc.load(int(p.base))
			pc.code(cur.Row(i))
		}
		if pc.bad {
			return false
		}
	}
	return pc.codeStill(pairs, cur)
}

// codeWhole codes an object that the baseline has not.
func (pc *payloadCodec) codeWhole(row []int32) {
	for i := range pc.schema.fields {
		f := &pc.schema.fields[i]
		if f.Class == schema.ClassBytes {
			pc.codeWholeBytes(f, row[pc.schema.at[i]:pc.schema.at[i]+f.N])
			continue
		}
		for k, v := range row[pc.schema.at[i] : pc.schema.at[i]+f.N] {
			lo, hi := f.bounds(k)
			x := pc.Raw(uint64(int64(v)-int64(lo)), uint(bits.Len32(uint32(hi-lo))))
			pc.store(&row[pc.schema.at[i]+k], pc.bounded(int64(lo)+int64(x), lo, hi))
		}
	}
}

// store sets a component of the object that is decoded. An encoder has the component already, and
// must not write it: encoders of several players read the same set at the same time.
func (pc *payloadCodec) store(component *int32, v int32) {
	if pc.Decoding {
		*component = v
	}
}

// width is how many bits hold any component of the field.
func (f *Field) width() uint { return uint(bits.Len32(uint32(f.Hi - f.Lo))) }

// bounded notes a component that is out of its bounds.
func (pc *payloadCodec) bounded(v int64, lo, hi int32) int32 {
	if v < int64(lo) || v > int64(hi) {
		pc.bad = true
		return lo
	}
	return int32(v)
}

// mask codes which of the sets before the baseline are known.
func (pc *payloadCodec) mask(known uint32) (mask uint32) {
	for i := range maxLag {
		if pc.Bit(&pc.state.known, known>>i&1 != 0) {
			mask |= 1 << i
		}
	}
	return mask
}

// keep makes what is known of single objects that of the coded ones.
func (pc *payloadCodec) updateObjects(pairs []pair) {
	if pc.same {
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

// copyState copies the state of the baseline to the scratch state.
func (pc *payloadCodec) copyState() {
	pc.state.copyFrom(pc.from)
	n := pc.refs.base.Len()
	pc.state.last, pc.state.rested = resize(pc.state.last, len(pc.schema.fields)*n), resize(pc.state.rested, n)
	clear(pc.state.last[copy(pc.state.last, pc.from.last):])
	clear(pc.state.rested[copy(pc.state.rested, pc.from.rested):])
}

func resize(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n, n+n/4)
	}
	return s[:n]
}
