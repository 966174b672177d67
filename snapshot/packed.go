package snapshot

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// Packed is a copy of a set in less memory: each component takes the bits that its bounds need. The
// zero value is the empty set.
type Packed struct {
	objects []Object // never modified: several sets may use it
	ids     fnv.Hash // of objects
	rows    []uint64
	physics *physics // nil if unknown
}

// packing is the packed form of rows. No component is in two words.
type packing struct {
	places []packedPlace // by word
	ends   []int         // of the places of each word
}

// packedPlace is where a component is in its word: v-low, shifted.
type packedPlace struct {
	at    uint8 // index of the component
	shift uint8
	low   int32
	mask  uint32
}

// newPacking puts each component into the first word with room for it.
func newPacking(lows, highs []int32) (p packing) {
	var words [][]packedPlace
	var used []uint8 // bits of each word
	for at, low := range lows {
		width := uint8(bits.Len32(uint32(highs[at] - low)))
		k := slices.IndexFunc(used, func(n uint8) bool { return n+width <= 64 })
		if k < 0 {
			k = len(words)
			words, used = append(words, nil), append(used, 0)
		}
		words[k] = append(words[k], packedPlace{uint8(at), used[k], low, uint32(uint64(1)<<width - 1)})
		used[k] += width
	}
	for _, w := range words {
		p.places = append(p.places, w...)
		p.ends = append(p.ends, len(p.places))
	}
	return p
}

// words returns the number of words of a packed row.
func (p *packing) words() int { return len(p.ends) }

// pack packs rows of so many components.
func (p *packing) pack(dst []uint64, rows []int32, components int) {
	for len(rows) > 0 {
		row, from := rows[:components], 0
		for w, end := range p.ends {
			word := uint64(0)
			for i := range p.places[from:end] {
				c := &p.places[from+i]
				word |= uint64(uint32(row[c.at]-c.low)) << (c.shift & 63)
			}
			dst[w], from = word, end
		}
		rows, dst = rows[components:], dst[len(p.ends):]
	}
}

// unpack is the inverse of pack.
func (p *packing) unpack(rows []int32, packed []uint64, components int) {
	for len(rows) > 0 {
		row, from := rows[:components], 0
		for w, end := range p.ends {
			word := packed[w]
			for i := range p.places[from:end] {
				c := &p.places[from+i]
				row[c.at] = int32(uint32(word>>(c.shift&63))&c.mask) + c.low
			}
			from = end
		}
		rows, packed = rows[components:], packed[len(p.ends):]
	}
}

// Store makes p a copy of a set. It reuses the memory of p if that suffices. If another set, which
// may be nil, has the same objects, they share the list.
func (p *Packed) Store(s *Set, like *Packed) {
	p.objects, p.ids, p.physics = s.objects, s.ids, nil
	switch {
	case like != nil && like.ids == s.ids && slices.Equal(like.objects, s.objects):
		p.objects = like.objects
	case !s.shared:
		p.objects = slices.Clone(s.objects)
	}
	if s.physics != (physics{}) {
		known := s.physics
		p.physics = &known
	}
	k := &s.schema.packing
	n := len(p.objects) * k.words()
	if cap(p.rows) < n {
		p.rows = make([]uint64, n)
	}
	p.rows = p.rows[:n]
	k.pack(p.rows, s.ints, s.schema.ints)
}

// Len returns the number of objects.
func (p *Packed) Len() int { return len(p.objects) }

// Object returns the identity of object i, 0 to Len-1.
func (p *Packed) Object(i int) Object { return p.objects[i] }

// Index returns the index of the object with an id, and whether there is one.
func (p *Packed) Index(id uint16) (int, bool) {
	return slices.BinarySearchFunc(p.objects, id, compareID)
}

// Only returns a set with object i alone. It shares the memory of p.
func (p *Packed) Only(i int) Packed {
	words := len(p.rows) / len(p.objects)
	one := p.objects[i : i+1 : i+1]
	return Packed{objects: one, ids: idsOf(one), rows: p.rows[i*words:][:words:words]}
}

// AppendPacked appends a copy of object i of p, of the same schema. Its id must be higher than all
// others.
func (s *Set) AppendPacked(p *Packed, i int) error {
	o := p.objects[i]
	switch n := len(s.objects); {
	case n >= MaxObjects:
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, n, MaxObjects)
	case n > 0 && s.objects[n-1].ID >= o.ID:
		return fmt.Errorf("snapshot: object %d after object %d: want ascending ids", o.ID, s.objects[n-1].ID)
	}
	k := &s.schema.packing
	k.unpack(s.push(o), p.rows[i*k.words():], s.schema.ints)
	return nil
}

// Memory returns the size of the contents in bytes, without the list of objects.
func (p *Packed) Memory() int { return 8 * cap(p.rows) }

// unpack makes s the objects of p, whose list they share.
func (s *Set) unpack(p *Packed) {
	s.refer(p)
	n := len(p.objects) * s.schema.ints
	s.ints = slices.Grow(s.ints[:0], n)[:n]
	s.schema.packing.unpack(s.ints, p.rows, s.schema.ints)
}

// refer makes s the objects of p, without unpacking them.
func (s *Set) refer(p *Packed) {
	s.objects, s.ids, s.shared, s.packed, s.physics = p.objects, p.ids, true, p.rows, physics{}
	if p.physics != nil {
		s.physics = *p.physics
	}
}
