package snapshot

import "slices"

// since is since which snapshots a set has been as it is. Encoders then compare only what may have
// changed.
type since struct {
	known  bool
	list   uint64   // the list of objects
	rows   []uint64 // each object, and its being in the list
	lowest [3]int64 // minimum components of the positions
}

// Follow tells a full set that it is a part of snapshot n, and what the same part of the snapshot
// before was: a set that was told the same, or nil. It reports whether both are equal. It makes
// [Encoder.AppendGroup] faster, and changes nothing else. The set must not be modified any more.
func (s *Set) Follow(before *Set, n uint64) (equal bool) {
	t := &s.since
	t.known, t.list, t.rows = true, n, slices.Grow(t.rows[:0], len(s.objects))[:len(s.objects)]
	if before != nil && s.SameObjects(before) {
		from := &before.since
		t.list = from.list
		copy(t.rows, from.rows)
		if slices.Equal(s.ints, before.ints) {
			t.lowest = from.lowest
			return true
		}
		markDifferent(t.rows, n, s.ints, before.ints, s.schema.ints)
		t.lowest = s.schema.lowest(s)
		return false
	}
	k := 0
	for i, o := range s.objects {
		t.rows[i] = n
		if before == nil {
			continue
		}
		if at := before.follow(&k, o); at >= 0 && slices.Equal(s.Row(i), before.Row(int(at))) {
			t.rows[i] = before.since.rows[at]
		}
	}
	t.lowest = s.schema.lowest(s)
	return false
}
