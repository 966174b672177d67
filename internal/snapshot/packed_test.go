package snapshot_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/randomrow"
)

// TestPacked checks that objects of random types are the same after packing, one by one and all
// together, also in memory that was used before.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		s := randomrow.Schema(random)
		var p snapshot.Packed
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 20), 1, 4).Draw(t, "objects") {
			set, id := s.NewSet(), uint16(0)
			for range n {
				id += 1 + uint16(random.IntN(9))
				if err := set.Add(snapshot.Object{ID: id, Generation: uint8(random.Uint32())}, randomrow.New(random, s).Row); err != nil {
					t.Fatal(err)
				}
			}
			s.NewGroupDecoder().Store(&p, set, nil)
			all := s.NewSet()
			for i := range p.Len() {
				one, alone := s.NewSet(), p.Only(i)
				must(t, one.AppendPacked(&alone, 0))
				must(t, all.AppendPacked(&p, i))
				if k, ok := p.Index(set.Object(i).ID); k != i || !ok || one.Len() != 1 || one.Object(0) != set.Object(i) {
					t.Fatalf("object %d is %v, want %v", i, one.Object(0), set.Object(i))
				}
			}
			if !all.Equal(set) || s.NewGroupDecoder().Check(&p) != set.Check() {
				t.Fatalf("%d objects differ after packing", n)
			}
			if n > 0 && all.AppendPacked(&p, n-1) == nil {
				t.Fatal("an object was appended after itself")
			}
		}
	})
}
