package snapshot

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPart checks, on random histories that are longer than the ring, that a part has the objects
// that were put in each snapshot that it stores, and that they are coded as those of plain sets.
func TestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := priorSchema()
		const ids, snapshots = 12, 3 * Ring
		step, distance := rapid.IntRange(0, 2).Draw(t, "step"), rapid.IntRange(1, 6).Draw(t, "distance")
		first := rapid.Uint64Range(0, 100).Draw(t, "first")
		random, busy := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5)), rapid.IntRange(1, 10).Draw(t, "busy")
		rows := map[uint16][]int32{}
		part := s.GroupFrom(first)
		var plain []*Set
		for k := range snapshots {
			plain = append(plain, s.NewSet())
			for id := range uint16(ids) {
				switch row := rows[id]; random.IntN(10 * busy) {
				case 0:
					delete(rows, id)
				case 1, 2:
					if row == nil {
						rows[id] = make([]int32, s.Components())
					}
				case 3, 4, 5, 6:
					if row != nil {
						row[4+random.IntN(3)] += random.Int32N(44) - 3
					}
				}
				if row := rows[id]; row != nil {
					if err := part.Put(Object{ID: id}, row); err != nil {
						t.Fatal(err)
					}
					if err := plain[k].Add(Object{ID: id}, row); err != nil {
						t.Fatal(err)
					}
				}
			}
			part.Commit()
			n := first + uint64(k)
			if part.Has(n+1) || n >= Ring && part.Has(n-Ring) || first > 0 && part.Has(first-1) {
				t.Fatalf("snapshot %d: the group has others than the newest", n)
			}
			for i := max(0, k+1-Ring); i <= k; i++ {
				m, set := first+uint64(i), plain[i]
				if same := part.Same(m); same && !set.Equal(plain[k]) || !same && i == k {
					t.Fatalf("snapshot %d is the same as %d: %v", n, m, same)
				}
				if !slices.Equal(part.Objects(m), set.objects) || part.Check(m) != set.Check() || part.view(new(Set), m).lowest() != set.lowest() {
					t.Fatalf("snapshot %d: that of %d differs from what was put", n, m)
				}
				for j, o := range set.objects {
					if !slices.Equal(part.Row(o, m), set.Row(j)) {
						t.Fatalf("snapshot %d: object %d of snapshot %d differs from what was put", n, o.ID, m)
					}
				}
			}
			if base := k - distance; base >= maxLag*step {
				b := Baseline{Distance: distance, Step: step}
				got, left := new(Encoder).AppendGroup(nil, &part, b)
				want, missing := new(Encoder).AppendObjects(nil, plain[k], b, func(age int) *Set { return plain[base-age] })
				if !bytes.Equal(got, want) || left != missing {
					t.Fatalf("snapshot %d: %x, %d left out; want %x, %d", n, got, left, want, missing)
				}
			}
		}
		last := plain[snapshots-1]
		for range Ring {
			for j, o := range last.objects {
				if err := part.Put(o, last.Row(j)); err != nil {
					t.Fatal(err)
				}
			}
			part.Commit()
		}
		kept := slices.ContainsFunc(part.before, func(rows []int32) bool { return rows != nil })
		if kept || len(part.lists) != 1 || len(part.lows) != 1 || len(part.left) > 0 || len(part.changes)-len(part.free) != last.Len() {
			t.Fatalf("%d snapshots without a change: %d lists, %d departures, %d slots of which %d are free, for %d objects; rows are kept: %v", Ring, len(part.lists), len(part.left), len(part.changes), len(part.free), last.Len(), kept)
		}
	})
}

// TestPartErrors checks that what cannot be put is refused, and leaves no trace.
func TestPartErrors(t *testing.T) {
	s := priorSchema()
	part, row := s.GroupFrom(0), make([]int32, s.Components())
	low := slices.Clone(row)
	low[0] = -1
	for id := range uint16(MaxGroup) {
		if err := part.Put(Object{ID: id}, row); err != nil {
			t.Fatal(err)
		}
		if part.Put(Object{ID: id}, row) == nil || part.Put(Object{ID: id + 1}, low) == nil || part.Put(Object{ID: id + 1}, row[1:]) == nil {
			t.Fatalf("after object %d: an invalid object was put", id)
		}
	}
	if err := part.Put(Object{ID: MaxGroup}, row); err == nil {
		t.Fatal("one object too many was put")
	}
	if part.Commit(); part.Len() != MaxGroup {
		t.Errorf("%d objects, want %d", part.Len(), MaxGroup)
	}
}
