package areas

import "github.com/uplink-rpc/uplink/internal/snapshot"

// countedSet is a set with a reference count. Several messages may contain it.
type countedSet struct {
	snapshot.Packed
	typ  *typeDecoder
	used int // number of references
}

// trimEvery is the interval at which free sets are trimmed, in messages.
const trimEvery = 8

// freeSets are the unused sets of a type. Element i contains sets whose memory fits i objects.
type freeSets []freeList

type freeList struct {
	sets   []*countedSet
	unused int // minimum length of sets since the last trim
}

func (f *freeSets) put(s *countedSet) {
	n := s.Len()
	for len(*f) <= n {
		*f = append(*f, freeList{})
	}
	l := &(*f)[n]
	l.sets = append(l.sets, s)
}

// take removes and returns a set whose memory fits that many objects, or returns nil.
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

// trim discards the sets that were not needed since the last trim.
func (f *freeSets) trim() {
	for i := range *f {
		l := &(*f)[i]
		clear(l.sets[len(l.sets)-l.unused:])
		l.sets = l.sets[:len(l.sets)-l.unused]
		l.unused = len(l.sets)
	}
}
