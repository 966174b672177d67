package snapshot_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

func TestRangeErrorNamesObjectAndField(t *testing.T) {
	s := testSchema(t)
	row := [11]int32{0, 0, 0, 0, 0, 0, 5001, 0, -1, -1, 0}
	err := s.NewSet().Add(snapshot.Object{ID: 300}, row[:])
	const want = `snapshot: object 300: field "Position": component 5001, want -5000 to 5000`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBadSets(t *testing.T) {
	s := testSchema(t)
	set := s.NewSet()
	row := [11]int32{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 0}
	for id := range snapshot.MaxObjects {
		must(t, set.Add(snapshot.Object{ID: uint16(id)}, row[:]))
	}
	if set.Add(snapshot.Object{ID: 60000}, row[:]) == nil {
		t.Error("more than MaxObjects were taken")
	}
	set.Reset()
	_ = set.Add(snapshot.Object{ID: 5}, row[:])
	for _, id := range []uint16{5, 4} {
		if set.Add(snapshot.Object{ID: id}, row[:]) == nil {
			t.Errorf("object %d was taken after 5", id)
		}
	}
	if set.Add(snapshot.Object{ID: 6}, row[:10]) == nil || set.Len() != 1 {
		t.Error("a short row was taken")
	}
}
