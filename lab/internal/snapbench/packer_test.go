package snapbench

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func packingOf(bits uint8) packing {
	return packing{
		changed: bits&1 != 0, indices: bits&2 != 0, positions: bits&4 != 0,
		orientations: bits&8 != 0, same: bits&16 != 0, atRest: bits&32 != 0,
	}
}

func packedSchema(t testing.TB) *snapshot.Schema {
	t.Helper()
	s, err := snapshot.NewSchema(append(moving().Fields(), snapshot.Field{Name: "Heading", Class: schema.ClassAngle, N: 1, Hi: 359})...)
	uplinktest.Must(t, err)
	return s
}

// TestPacker packs random snapshots against random baselines and unpacks them again.
func TestPacker(t *testing.T) {
	s := packedSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		base, cur, got := s.NewSet(), s.NewSet(), s.NewSet()
		change := rapid.SampledFrom([]int32{0, 10, 200, 1000}).Draw(t, "change")
		id := 0
		for range rapid.IntRange(1, 80).Draw(t, "objects") {
			row := []int32{
				rapid.Int32Range(0, 3).Draw(t, "largest"), 100, 200, rapid.Int32Range(0, cubes.MaxComponent).Draw(t, "orientation"),
				rapid.Int32Range(-1<<17, 1<<17-1).Draw(t, "position"), 0, 0, 1, 0, 0, rapid.Int32Range(-1, 1).Draw(t, "velocity"), 7,
			}
			o := snapshot.Object{ID: uint16(id)}
			if err := base.Add(o, row); err != nil {
				t.Fatal(err)
			}
			if d := rapid.Int32Range(-change, change).Draw(t, "difference"); d != 0 {
				row[3] = min(max(row[3]+d, 0), cubes.MaxComponent)
				row[4] = min(max(row[4]+d, -1<<17), 1<<17-1)
				row[11] = row[11] + 3*d%7 + 3
			}
			if err := cur.Add(o, row); err != nil {
				t.Fatal(err)
			}
			id += rapid.SampledFrom([]int{1, 1, 1, 20, 100}).Draw(t, "distance")
		}
		p := newPacker(s, packingOf(rapid.Uint8().Draw(t, "packing")))
		out, err := p.append(nil, cur, base)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.decode(got, base, out); err != nil || !got.Equal(cur) {
			t.Fatalf("%+v: %v", p.use, err)
		}
		if _, err := p.append(nil, cur, s.NewSet()); err == nil {
			t.Fatal("packed against other objects")
		}
	})
}

// FuzzPacker unpacks arbitrary bytes: the result is within its bounds.
func FuzzPacker(f *testing.F) {
	s := packedSchema(f)
	base := s.NewSet()
	for id := range uint16(20) {
		uplinktest.Must(f, base.Add(snapshot.Object{ID: id}, make([]int32, s.Components())))
	}
	f.Add([]byte{1, 2, 3}, uint8(63))
	f.Add(bytes.Repeat([]byte{0xff}, 400), uint8(0))
	f.Fuzz(func(t *testing.T, src []byte, use uint8) {
		got, again := s.NewSet(), s.NewSet()
		if newPacker(s, packingOf(use)).decode(got, base, src) != nil {
			return
		}
		for i := range got.Len() {
			uplinktest.Must(t, again.Add(got.Object(i), got.Row(i)))
		}
	})
}
