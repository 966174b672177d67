package areas

import "github.com/uplink-rpc/uplink/internal/snapshot"

// countedSet is a set that several messages may contain.
type countedSet struct {
	snapshot.Packed
	typ  *typeDecoder
	used int // number of messages
}

// store returns a copy of what the group in a slot decoded to. Most likely the newest message has
// the same objects there.
func (d *Decoder) store(t *typeDecoder, slot uint16) *countedSet {
	s := t.free.take(t.group.Len())
	if s == nil {
		s = &countedSet{typ: t}
	}
	var like *snapshot.Packed
	if newest := setOf(d.messages.Get(d.next-1), slot); newest != nil {
		like = &newest.Packed
	}
	t.groups.Store(&s.Packed, t.group, like)
	return s
}

// release frees the sets of members that no message contains any more.
func (d *Decoder) release(members []receivedMember) {
	for _, m := range members {
		if m.set.used--; m.set.used == 0 {
			m.set.typ.free.put(m.set)
		}
	}
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

// Memory returns the size of the stored objects, in bytes.
func (d *Decoder) Memory() (sum int) {
	for _, m := range d.messages.All() {
		for _, e := range m.members {
			sum += e.set.Memory() / e.set.used
		}
	}
	for _, t := range d.types {
		for _, l := range t.free {
			for _, s := range l.sets {
				sum += s.Memory()
			}
		}
		sum += t.shown.Memory() + t.merged.Memory()
	}
	return sum
}
