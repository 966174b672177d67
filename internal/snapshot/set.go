package snapshot

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// MaxObjects is the maximum number of objects of a set.
const MaxObjects = 4096

// Object identifies an object of a set. If an id is reused for another object, that object must
// have another Generation.
type Object struct {
	ID         uint16
	Generation uint8
}

func (o Object) word() uint64 { return uint64(o.ID)<<8 | uint64(o.Generation) }

// Set holds the objects of a world at one tick, in ascending order of ids. [Schema.NewSet] and
// [History.Begin] return one. Not safe for concurrent use.
type Set struct {
	schema  *Schema
	objects []Object
	ids     fnv.Hash // hash of objects
	ints    []int32
	packed  []uint64 // rows of the Packed to which the set refers, or nil; if set, ints may be empty
	group   *Group   // if set, the rows are those of this group in snapshot number, and ints is not used
	number  uint64
	slots   []uint16
	shared  bool // other sets use the list objects, which must not be modified
	physics physics
}

// Reset removes all objects and keeps the memory.
func (s *Set) Reset() {
	s.clearObjects()
	s.ints, s.physics = s.ints[:0], physics{}
}

func (s *Set) clearObjects() {
	if s.shared {
		s.objects, s.shared = nil, false
	}
	s.objects, s.ids = s.objects[:0], 0
}

// Schema returns the schema of the objects.
func (s *Set) Schema() *Schema { return s.schema }

// Len returns the number of objects.
func (s *Set) Len() int { return len(s.objects) }

// Object returns the identity of object i, 0 to Len-1.
func (s *Set) Object(i int) Object { return s.objects[i] }

// Row returns the components of object i. The set owns the slice.
func (s *Set) Row(i int) []int32 {
	if s.group != nil {
		return s.group.rowAt(s.slots[i], s.number)
	}
	n := s.schema.ints
	return s.ints[i*n : (i+1)*n : (i+1)*n]
}

// current is a faster Row, for sets other than earlier snapshots of a group.
func (s *Set) current(i int) []int32 {
	if s.group != nil {
		return s.group.row(s.slots[i])
	}
	n := s.schema.ints
	return s.ints[i*n : (i+1)*n : (i+1)*n]
}

// Index returns the index of the object with an id, and whether there is one.
func (s *Set) Index(id uint16) (int, bool) {
	return slices.BinarySearchFunc(s.objects, id, compareID)
}

func compareID(o Object, id uint16) int { return int(o.ID) - int(id) }

// Add appends a copy of an object. Its id must be higher than all others, and each component within
// the bounds of its field. After an error the set is unchanged. Add does not allocate if the set
// has capacity.
func (s *Set) Add(o Object, row []int32) error {
	if n := len(s.objects); n >= MaxObjects {
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, n, MaxObjects)
	}
	if err := s.schema.checkNext(s.objects, o, row); err != nil {
		return err
	}
	if err := s.schema.check(o.ID, row); err != nil {
		return err
	}
	s.addObject(o)
	s.ints = append(s.ints, row...)
	return nil
}

// CopyFrom makes s equal to o. Both must have the same schema.
func (s *Set) CopyFrom(o *Set) {
	s.clearObjects()
	s.reserve(o.Len())
	s.objects, s.ids, s.ints = append(s.objects, o.objects...), o.ids, append(s.ints[:0], o.ints...)
}

// shareObjects makes s use the list of objects of o. It stores the list that only s used in spare.
func (s *Set) shareObjects(o *Set, spare *[]Object) {
	if !s.shared && s.objects != nil {
		*spare = s.objects[:0]
	}
	s.objects, s.ids = o.objects, o.ids
	s.shared, o.shared = true, true
}

// prepare ensures capacity for n objects. A set without a list uses the spare list.
func (s *Set) prepare(n int, spare *[]Object) {
	if s.objects == nil {
		s.objects, *spare = *spare, nil
	}
	s.reserve(n)
}

// reserve ensures capacity for n objects, without further growth.
func (s *Set) reserve(n int) {
	if cap(s.objects) < n {
		s.objects = append(make([]Object, 0, n), s.objects...)
	}
	if n *= s.schema.ints; cap(s.ints) < n {
		s.ints = append(make([]int32, 0, n), s.ints...)
	}
}

// Equal reports whether both sets contain the same objects with the same components.
func (s *Set) Equal(o *Set) bool {
	return slices.Equal(s.objects, o.objects) && slices.Equal(s.ints, o.ints)
}

// own replaces a shared list of objects by a copy, so that it can be modified.
func (s *Set) own() {
	if s.shared {
		s.objects, s.shared = slices.Clone(s.objects), false
	}
}

func (s *Set) addObject(o Object) {
	s.own()
	s.objects = append(s.objects, o)
	s.ids = s.ids.Add(o.word())
}

// sameObjects reports whether both sets contain the same objects, by their hashes. The hashes of a
// forged set may collide. Both ends then decode the same wrong objects.
func (s *Set) sameObjects(o *Set) bool { return s.ids == o.ids && len(s.objects) == len(o.objects) }

// lowest returns the minimum components of the positions, 0 if the set is empty.
func (s *Set) lowest() (low [3]int64) {
	switch {
	case len(s.objects) == 0:
		return low
	case s.group != nil:
		return s.group.lowestAt(s.number)
	}
	lowX, lowY, lowZ := s.schema.position(s.ints)
	for at := 0; at < len(s.ints); at += s.schema.ints {
		x, y, z := s.schema.position(s.ints[at:])
		lowX, lowY, lowZ = min(lowX, x), min(lowY, y), min(lowZ, z)
	}
	return [3]int64{lowX, lowY, lowZ}
}

// sameList reports whether both lists contain the same objects. Sets often share their lists.
func sameList(a, b []Object) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// sameRow reports whether object i of s has the components of object k of o.
func (s *Set) sameRow(i int, o *Set, k int) bool {
	a, b := s.Row(i), o.Row(k)
	return &a[0] == &b[0] || slices.Equal(a, b)
}

// samePacked is sameRow for sets that refer to a Packed.
func (s *Set) samePacked(i int, o *Set, k int) bool {
	n := s.schema.packing.Words()
	return slices.Equal(s.packed[i*n:(i+1)*n], o.packed[k*n:(k+1)*n])
}

// idsOf returns the hash of objects.
func idsOf(objects []Object) (h fnv.Hash) {
	for _, o := range objects {
		h = h.Add(o.word())
	}
	return h
}

// follow returns the index of o in objects, or -1. It advances *at to the first object whose id is
// not below that of o. Calls with the same at must be in ascending order of ids.
func follow(objects []Object, at *int, o Object) int32 {
	for *at < len(objects) && objects[*at].ID < o.ID {
		*at++
	}
	if *at < len(objects) && objects[*at] == o {
		return int32(*at)
	}
	return -1
}

// push appends an object without checks and returns its row, whose content is undefined.
func (s *Set) push(o Object) []int32 {
	s.addObject(o)
	n := len(s.ints)
	s.ints = slices.Grow(s.ints, s.schema.ints)[:n+s.schema.ints]
	return s.ints[n:]
}

// memory returns the size of sets in bytes. A list of objects that several share counts once.
func memory(sets ...*Set) (sum int) {
	lists := map[*Object]bool{}
	for _, s := range sets {
		sum += 4 * cap(s.ints)
		if n := cap(s.objects); n > 0 && !lists[&s.objects[:1][0]] {
			lists[&s.objects[:1][0]] = true
			sum += 4 * n
		}
	}
	return sum
}

// SameObjects reports whether both sets contain the same objects.
func (s *Set) SameObjects(o *Set) bool {
	return s.sameObjects(o) && sameList(s.objects, o.objects)
}

// Check returns a hash of the objects and their components, for divergence checks.
func (s *Set) Check() uint16 { return s.hash() }

// Insert adds a copy of object i of another set, in the order of ids.
func (s *Set) Insert(from *Set, i int) error {
	o := from.objects[i]
	if k := len(s.objects); k < MaxObjects && (k == 0 || s.objects[k-1].ID < o.ID) {
		copy(s.push(o), from.Row(i))
		return nil
	}
	at, found := s.Index(o.ID)
	switch {
	case found:
		return fmt.Errorf("snapshot: object %d is in the set already", o.ID)
	case len(s.objects) >= MaxObjects:
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, len(s.objects), MaxObjects)
	}
	s.own()
	s.objects = append(s.objects, Object{})
	copy(s.objects[at+1:], s.objects[at:])
	s.objects[at] = o
	n := s.schema.ints
	s.ints = append(s.ints, from.Row(i)...)
	copy(s.ints[(at+1)*n:], s.ints[at*n:])
	copy(s.ints[at*n:], from.Row(i))
	s.ids = idsOf(s.objects)
	return nil
}

// Memory returns the size of the set's contents in bytes.
func (s *Set) Memory() int { return memory(s) }

// hash returns the hash of a set, for the divergence check.
func (s *Set) hash() uint16 {
	h := fnv.Offset
	for _, o := range s.objects {
		h = h.Add(o.word())
	}
	for i := range s.objects {
		for _, v := range s.Row(i) {
			h = h.Add(uint64(uint32(v)))
		}
	}
	for _, v := range s.physics.size {
		h = h.Add(uint64(v.floor)).Add(uint64(v.half))
	}
	return h.Add(uint64(s.physics.contact)).Fold16()
}

// AppendPacked appends a copy of object i of p, which must have the same schema. The id must be
// higher than all ids of s.
func (s *Set) AppendPacked(p *Packed, i int) error {
	o := p.objects[i]
	switch n := len(s.objects); {
	case n >= MaxObjects:
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, n, MaxObjects)
	case n > 0 && s.objects[n-1].ID >= o.ID:
		return fmt.Errorf("snapshot: object %d after object %d: want ascending ids", o.ID, s.objects[n-1].ID)
	}
	packing := &s.schema.packing
	packing.Unpack(s.push(o), p.rows[i*packing.Words():])
	return nil
}

// unpack sets s to the contents of p. Both share the list of objects.
func (s *Set) unpack(p *Packed) {
	s.refer(p)
	n := len(p.objects) * s.schema.ints
	s.ints = slices.Grow(s.ints[:0], n)[:n]
	for i := range p.objects {
		s.unpackRow(i)
	}
}

// unpackRow unpacks the row of object i.
func (s *Set) unpackRow(i int) {
	packing := &s.schema.packing
	packing.Unpack(s.Row(i), s.packed[i*packing.Words():])
}

// refer sets s to the contents of p without unpacking the rows. Both share the list of objects.
func (s *Set) refer(p *Packed) {
	s.objects, s.ids, s.shared, s.packed, s.physics = p.objects, p.ids, true, p.rows, physics{}
	if p.physics != nil {
		s.physics = *p.physics
	}
}
