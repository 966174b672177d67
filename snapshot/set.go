package snapshot

import (
	"fmt"
	"slices"
)

// MaxObjects is the most objects of a set.
const MaxObjects = 4096

// Object names an object of a set. Where an id is used again for another object, Generation differs.
type Object struct {
	ID         uint16
	Generation uint8
}

// Set is the objects of a world at one time, by ascending id. Make one with [Schema.NewSet] or get it from a [World].
type Set struct {
	schema  *Schema
	objects []Object
	roster  digest // of objects
	ints    []int32
}

// NewSet gives an empty set.
func (s *Schema) NewSet() *Set { return &Set{schema: s} }

// Reset empties the set and keeps its memory.
func (s *Set) Reset() { s.objects, s.roster, s.ints = s.objects[:0], 0, s.ints[:0] }

// Len is the number of objects.
func (s *Set) Len() int { return len(s.objects) }

// Object names object number i.
func (s *Set) Object(i int) Object { return s.objects[i] }

// Row gives the components of object number i; it is the set's own.
func (s *Set) Row(i int) []int32 {
	n := s.schema.ints
	return s.ints[i*n : (i+1)*n : (i+1)*n]
}

// Index finds the object of an id.
func (s *Set) Index(id uint16) (int, bool) {
	return slices.BinarySearchFunc(s.objects, id, func(o Object, id uint16) int { return int(o.ID) - int(id) })
}

// Add copies an object to the end of the set. Its id must be above those before it. A component outside its bounds is
// a error that names the field and its bounds; the set is as it was after an error. It allocates nothing where the set has room.
func (s *Set) Add(o Object, row []int32) error {
	switch n := len(s.objects); {
	case n >= MaxObjects:
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, n, MaxObjects)
	case n > 0 && s.objects[n-1].ID >= o.ID:
		return fmt.Errorf("snapshot: object %d after object %d: want ascending ids", o.ID, s.objects[n-1].ID)
	case len(row) != s.schema.ints:
		return fmt.Errorf("snapshot: object %d: %d components, want %d", o.ID, len(row), s.schema.ints)
	}
	if err := s.schema.check(o.ID, row); err != nil {
		return err
	}
	s.name(o)
	s.ints = append(s.ints, row...)
	return nil
}

// CopyFrom makes s equal to o, which must be of the same schema.
func (s *Set) CopyFrom(o *Set) {
	s.objects, s.roster, s.ints = append(s.objects[:0], o.objects...), o.roster, append(s.ints[:0], o.ints...)
}

// Equal says whether both sets hold the same objects with the same components.
func (s *Set) Equal(o *Set) bool {
	return slices.Equal(s.objects, o.objects) && slices.Equal(s.ints, o.ints)
}

func (s *Set) name(o Object) {
	s.objects = append(s.objects, o)
	s.roster.add(uint64(o.ID)<<8 | uint64(o.Generation))
}

// alike says fast whether both sets hold the same objects. A set made for it may deceive it, both ends alike.
func (s *Set) alike(o *Set) bool { return s.roster == o.roster && len(s.objects) == len(o.objects) }

// push adds an object without looking, and gives its row, which holds what was there before.
func (s *Set) push(o Object) []int32 {
	s.name(o)
	n := len(s.ints)
	s.ints = slices.Grow(s.ints, s.schema.ints)[:n+s.schema.ints]
	return s.ints[n:]
}

// memory is how many bytes the set takes.
func (s *Set) memory() int { return 4*cap(s.objects) + 4*cap(s.ints) }
