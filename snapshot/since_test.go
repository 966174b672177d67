package snapshot

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestFollow checks, on random histories of a group, that Follow changes no coded byte.
func TestFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := priorSchema()
		const ids, snapshots = 12, 20
		step, distance := rapid.IntRange(0, 2).Draw(t, "step"), rapid.IntRange(1, 6).Draw(t, "distance")
		rows := map[uint16][]int32{}
		var told, untold []*Set
		for n := range uint64(snapshots) {
			sets := [2]*Set{s.NewSet(), s.NewSet()}
			for id := range uint16(ids) {
				switch row := rows[id]; rapid.IntRange(0, 9).Draw(t, "event") {
				case 0:
					delete(rows, id)
				case 1, 2:
					if row == nil {
						rows[id] = make([]int32, s.Components())
					}
				case 3, 4:
					if row != nil {
						row[4+rapid.IntRange(0, 2).Draw(t, "axis")] += rapid.Int32Range(-3, 40).Draw(t, "move")
					}
				}
				if row := rows[id]; row != nil {
					for _, set := range sets {
						if err := set.Add(Object{ID: id}, row); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			var before *Set
			if n > 0 {
				before = told[n-1]
			}
			if equal := sets[0].Follow(before, n); equal != (before != nil && before.Equal(sets[0])) {
				t.Fatalf("snapshot %d: Follow reports %v", n, equal)
			}
			told, untold = append(told, sets[0]), append(untold, sets[1])
			if base := int(n) - distance; base >= maxLag*step {
				b := Baseline{Distance: distance, Step: step}
				got, left := new(Encoder).AppendGroup(nil, sets[0], n, b, func(age int) *Set { return told[base-age] })
				want, missing := new(Encoder).AppendGroup(nil, sets[1], n, b, func(age int) *Set { return untold[base-age] })
				if !bytes.Equal(got, want) || left != missing {
					t.Fatalf("snapshot %d: %x, %d left out; want %x, %d", n, got, left, want, missing)
				}
			}
		}
	})
}
