package snapshot

import (
	"math/bits"
	"slices"
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
func (w *walk) names(pairs []pair, cur *Set) ([]pair, bool) {
	pairs = pairs[:0]
	base := w.hist.base
	if !w.Decoding {
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
	gone := w.Bit(&w.state.gone[0], kept < base.Len())
	if gone {
		pairs = w.codeGone(pairs)
	} else if w.Decoding {
		pairs = same(pairs, base)
	}
	n := w.Uint(&w.state.born, bornLevel, uint64(born))
	if n > MaxObjects || w.Decoding && n+uint64(len(pairs)) > MaxObjects {
		w.fault = ErrCount
		return pairs, false
	}
	born = int(n)
	w.same = !gone && born == 0
	return w.codeBorn(pairs, born)
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

func (w *walk) codeGone(pairs []pair) []pair {
	k := 0
	for i, o := range w.hist.base.objects {
		for !w.Decoding && k < len(pairs) && pairs[k].object.ID < o.ID {
			k++
		}
		kept := k < len(pairs) && pairs[k].base == int32(i)
		if !w.Bit(&w.state.gone[1], !kept) && w.Decoding {
			pairs = append(pairs, pair{o, int32(i)})
			k = len(pairs)
		}
	}
	return pairs
}

// codeBorn codes the names of n objects that the baseline has not, each id from the one before it.
func (w *walk) codeBorn(pairs []pair, n int) ([]pair, bool) {
	before, i := int64(-1), 0
	for range n {
		var o Object
		if !w.Decoding {
			for pairs[i].base >= 0 {
				i++
			}
			o = pairs[i].object
			i++
		}
		id := before + 1 + int64(w.Uint(&w.state.gap, gapLevel, uint64(int64(o.ID)-before-1)))
		if id > 1<<16-1 {
			return pairs, false
		}
		o.ID, o.Generation = uint16(id), uint8(w.Raw(uint64(o.Generation), 8))
		before = id
		if !w.Decoding {
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
func (w *walk) rows(pairs []pair, cur *Set) bool {
	w.near, w.still, w.order, w.bad = w.near[:0], w.still[:0], 0, false
	w.movers.reset()
	switch {
	case w.Decoding && w.same:
		cur.CopyFrom(w.hist.base)
	case w.Decoding:
		for _, p := range pairs {
			cur.push(p.object)
		}
	}
	w.level()
	for i, p := range pairs {
		switch {
		case p.base < 0:
			w.codeWhole(cur.Row(i))
		case w.settled(int(p.base)):
			w.still = append(w.still, int32(i))
		default:
			w.load(int(p.base))
			w.code(cur.Row(i))
		}
		if w.bad {
			return false
		}
	}
	return w.codeStill(pairs, cur)
}

// codeWhole codes an object that the baseline has not.
func (w *walk) codeWhole(row []int32) {
	for i := range w.schema.fields {
		f := &w.schema.fields[i]
		if f.Kind == Bytes {
			w.codeWholeBytes(f, row[w.schema.at[i]:w.schema.at[i]+f.N])
			continue
		}
		for k, v := range row[w.schema.at[i] : w.schema.at[i]+f.N] {
			lo, hi := f.bounds(k)
			x := w.Raw(uint64(int64(v)-int64(lo)), uint(bits.Len32(uint32(hi-lo))))
			w.store(&row[w.schema.at[i]+k], w.bounded(int64(lo)+int64(x), lo, hi))
		}
	}
}

// store sets a component of the object that is decoded. An encoder has the component already, and
// must not write it: encoders of several players read the same set at the same time.
func (w *walk) store(component *int32, v int32) {
	if w.Decoding {
		*component = v
	}
}

// width is how many bits hold any component of the field.
func (f *Field) width() uint { return uint(bits.Len32(uint32(f.Hi - f.Lo))) }

// bounded notes a component that is out of its bounds.
func (w *walk) bounded(v int64, lo, hi int32) int32 {
	if v < int64(lo) || v > int64(hi) {
		w.bad = true
		return lo
	}
	return int32(v)
}

// mask codes which of the sets before the baseline are known.
func (w *walk) mask(known uint32) (mask uint32) {
	for i := range reach {
		if w.Bit(&w.state.known, known>>i&1 != 0) {
			mask |= 1 << i
		}
	}
	return mask
}

// keep makes what is known of single objects that of the coded ones.
func (w *walk) keep(pairs []pair) {
	if w.same {
		return
	}
	to, old := resize(w.spare, len(pairs)), w.state.rested
	for i, p := range pairs {
		to[i] = 0
		if p.base >= 0 {
			to[i] = old[p.base]
		}
	}
	w.state.rested, w.spare = to, old
	n, from := len(w.schema.fields), len(w.hist.base.objects)
	to = resize(w.spare, n*len(pairs))
	for f := range n {
		for i, p := range pairs {
			v := int16(0)
			if p.base >= 0 {
				v = w.state.last[f*from+int(p.base)]
			}
			to[f*len(pairs)+i] = v
		}
	}
	w.state.last, w.spare = to, w.state.last
}

func resize(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n, n+n/4)
	}
	return s[:n]
}
