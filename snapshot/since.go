package snapshot

import "slices"

// since is since which snapshots a set has been as it is. Encoders then compare only what may have
// changed.
type since struct {
	known  bool
	number uint64   // of the snapshot to which ages relate
	list   uint64   // the list of objects
	ages   []uint8  // of each object and its being in the list, in snapshots, at most maxAge
	lowest [3]int64 // minimum components of the positions
}

// maxAge is above that of any reference.
const maxAge = 255

// Follow tells a full set that it is a part of snapshot n, and what the same part of the snapshot
// before was: a set that was told the same, or nil. It reports whether both are equal. It makes
// [Encoder.AppendGroup] faster, and changes nothing else. The set must not be modified any more.
func (s *Set) Follow(before *Set, n uint64) (equal bool) {
	t := &s.since
	t.known, t.number, t.list, t.ages = true, n, n, slices.Grow(t.ages[:0], len(s.objects))[:len(s.objects)]
	if before != nil && s.SameObjects(before) {
		from := &before.since
		t.list = from.list
		if slices.Equal(s.ints, before.ints) {
			t.lowest = from.lowest
			return true
		}
		passed := n - from.number
		for i, age := range from.ages {
			t.ages[i] = uint8(min(uint64(age)+passed, maxAge))
		}
		markDifferent(t.ages, 0, s.ints, before.ints, s.schema.ints)
		t.lowest = s.schema.lowest(s)
		return false
	}
	k := 0
	for i, o := range s.objects {
		t.ages[i] = 0
		if before == nil {
			continue
		}
		if at := before.follow(&k, o); at >= 0 && slices.Equal(s.Row(i), before.Row(int(at))) {
			t.ages[i] = uint8(min(uint64(before.since.ages[at])+n-before.since.number, maxAge))
		}
	}
	t.lowest = s.schema.lowest(s)
	return false
}
