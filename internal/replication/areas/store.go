package areas

import "github.com/uplink-rpc/uplink/internal/snapshot"

// countedSet is a set that several messages may contain.
type countedSet struct {
	snapshot.Packed
	typ  *typeDecoder
	used int // number of messages
}

// trimEvery is the number of messages after which sets that were not reused are discarded.
const trimEvery = 8

// freeSets are the unused sets of a type, by their number of objects, for which their memory is
// just enough.
type freeSets []freeList

type freeList struct {
	sets   []*countedSet
	unused int // of these, since the last trim
}

func (f *freeSets) put(s *countedSet) {
	n := s.Len()
	for len(*f) <= n {
		*f = append(*f, freeList{})
	}
	l := &(*f)[n]
	l.sets = append(l.sets, s)
}

// take returns a set for so many objects, or nil.
func (f *freeSets) take(objects int) *countedSet {
	if objects >= len(*f) {
		return nil
	}
	l := &(*f)[objects]
	n := len(l.sets) - 1
	if n < 0 {
		return nil
	}
	s := l.sets[n]
	l.sets[n], l.sets, l.unused = nil, l.sets[:n], min(l.unused, n)
	return s
}

// trim discards the sets that were not used since the last trim.
func (f *freeSets) trim() {
	for i := range *f {
		l := &(*f)[i]
		clear(l.sets[len(l.sets)-l.unused:])
		l.sets = l.sets[:len(l.sets)-l.unused]
		l.unused = len(l.sets)
	}
}
