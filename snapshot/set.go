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

// Set is the objects of a world at one tick, by ascending id. [Schema.NewSet] and [World.Begin]
// return one. Not safe for concurrent use.
type Set struct {
	schema  *Schema
	objects []Object
	ids     fnv.Hash // of objects
	ints    []int32
	packed  []uint64 // the same, if the set is that of a Packed; ints may then be empty
	part    *Part    // has the rows instead of ints, of the snapshot with the number, in slots
	number  uint64
	slots   []uint16
	shared  bool // other sets use objects too: it must not be modified
	physics physics
}

// NewSet returns an empty set.
func (s *Schema) NewSet() *Set { return &Set{schema: s} }

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
	if s.part != nil {
		return s.part.rowAt(s.slots[i], s.number)
	}
	n := s.schema.ints
	return s.ints[i*n : (i+1)*n : (i+1)*n]
}

// current is Row for a set that is not an older one of a part.
func (s *Set) current(i int) []int32 {
	if s.part != nil {
		return s.part.row(s.slots[i])
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

// checkNext checks the id of an object that follows others, and the length of its row.
func (s *Schema) checkNext(objects []Object, o Object, row []int32) error {
	switch n := len(objects); {
	case n > 0 && objects[n-1].ID >= o.ID:
		return fmt.Errorf("snapshot: object %d after object %d: want ascending ids", o.ID, objects[n-1].ID)
	case len(row) != s.ints:
		return fmt.Errorf("snapshot: object %d: %d components, want %d", o.ID, len(row), s.ints)
	}
	return nil
}

// CopyFrom makes s equal to o. Both must have the same schema.
func (s *Set) CopyFrom(o *Set) {
	s.clearObjects()
	s.reserve(o.Len())
	s.objects, s.ids, s.ints = append(s.objects, o.objects...), o.ids, append(s.ints[:0], o.ints...)
}

// shareObjects makes s use the list of objects of o. spare gets the list that s used alone.
func (s *Set) shareObjects(o *Set, spare *[]Object) {
	if !s.shared && s.objects != nil {
		*spare = s.objects[:0]
	}
	s.objects, s.ids = o.objects, o.ids
	s.shared, o.shared = true, true
}

// prepare makes room for n objects. A set without a list gets the spare one.
func (s *Set) prepare(n int, spare *[]Object) {
	if s.objects == nil {
		s.objects, *spare = *spare, nil
	}
	s.reserve(n)
}

// reserve makes room for n objects, without any for more.
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

// own makes the list of objects one that no other set uses.
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

// sameObjects reports whether both sets contain the same objects, by their hashes. A forged set may
// collide; both ends then make the same mistake.
func (s *Set) sameObjects(o *Set) bool { return s.ids == o.ids && len(s.objects) == len(o.objects) }

// lowest returns the minimum components of the positions, 0 if the set is empty.
func (s *Set) lowest() (low [3]int64) {
	switch {
	case len(s.objects) == 0:
		return low
	case s.part != nil:
		return s.part.lowestAt(s.number)
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

// samePacked is sameRow for sets of a Packed.
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

// follow returns the index of o, or -1. It moves at up to the first id that is not below that of o.
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
