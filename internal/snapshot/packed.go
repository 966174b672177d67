package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// Packed is a copy of a set in less memory: each component takes the bits that its bounds need. The
// zero value is the empty set.
type Packed struct {
	objects []Object // never modified, because several sets may share it
	ids     fnv.Hash // hash of objects
	rows    []uint64
	physics *physics // nil if unknown
}

// store makes p a copy of a set. It reuses the memory of p if that suffices. If like is not nil and
// has the same objects, p shares its list. If base is not nil and has the objects of s, only the
// rows whose indices are in changed may differ from base.
func (p *Packed) store(s *Set, like, base *Packed, changed []int32) {
	p.objects, p.ids, p.physics = s.objects, s.ids, nil
	switch {
	case like != nil && sameList(like.objects, s.objects):
		p.objects = like.objects
	case !s.shared:
		p.objects = slices.Clone(s.objects)
	}
	switch {
	case s.physics == physics{}:
	case like != nil && like.physics != nil && *like.physics == s.physics:
		p.physics = like.physics
	default:
		known := s.physics
		p.physics = &known
	}
	packing := &s.schema.packing
	words := packing.Words()
	n := len(p.objects) * words
	if cap(p.rows) < n {
		p.rows = make([]uint64, n)
	}
	p.rows = p.rows[:n]
	if base == nil || !sameList(base.objects, s.objects) {
		for i := range p.objects {
			packing.Pack(p.rows[i*words:], s.Row(i))
		}
		return
	}
	copy(p.rows, base.rows)
	for _, i := range changed {
		packing.Pack(p.rows[int(i)*words:], s.Row(int(i)))
	}
}

// Len returns the number of objects.
func (p *Packed) Len() int { return len(p.objects) }

// Object returns the identity of object i, 0 to Len-1.
func (p *Packed) Object(i int) Object { return p.objects[i] }

// Index returns the index of the object with an id, and whether there is one.
func (p *Packed) Index(id uint16) (int, bool) {
	return slices.BinarySearchFunc(p.objects, id, compareID)
}

// Only returns a set that contains only object i. It shares the memory of p.
func (p *Packed) Only(i int) Packed {
	words := len(p.rows) / len(p.objects)
	one := p.objects[i : i+1 : i+1]
	return Packed{objects: one, ids: idsOf(one), rows: p.rows[i*words:][:words:words]}
}

// Memory returns the size of the contents in bytes, without the list of objects.
func (p *Packed) Memory() int { return 8 * cap(p.rows) }

// unpackedSet is a set that is loaded from one Packed after another. It unpacks only the rows that
// differ from the previous Packed.
type unpackedSet struct {
	Set
	words []uint64 // packed form of ints
}

// load sets u to the contents of p and returns its set. Both share the list of objects.
func (u *unpackedSet) load(p *Packed) *Set {
	same := len(u.words) == len(p.rows) && sameList(u.objects, p.objects)
	if u.refer(p); !same {
		u.words = append(u.words[:0], p.rows...)
		u.unpack(p)
		return &u.Set
	}
	width := u.schema.packing.Words()
	eachDifferent(p.rows, u.words, width, func(row int) {
		copy(u.words[row*width:(row+1)*width], p.rows[row*width:])
		u.unpackRow(row)
	})
	return &u.Set
}
