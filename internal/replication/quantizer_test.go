package replication

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

type flatObject struct {
	Health float64 `uplink:"min=0,max=100,resolution=0.5"`
	Open   bool
}

type namedObject struct {
	Health float64 `uplink:"min=0,max=100,resolution=0.5"`
	Name   []byte  `uplink:"max=4"`
}

// TestQuantizer puts random objects, some of which cannot be quantized, and compares each row with
// one that is quantized separately.
func TestQuantizer(t *testing.T) {
	flat, err := snapshot.Compile[flatObject]("flat")
	if err != nil {
		t.Fatal(err)
	}
	named, err := snapshot.Compile[namedObject]("named")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		flats, names := NewQuantizer(flat), NewQuantizer(named)
		name := []byte("1234")
		for range rapid.IntRange(1, 50).Draw(t, "puts") {
			id := rapid.SampledFrom([]uint16{0, 1, 7, 65535}).Draw(t, "id")
			health := float64(rapid.IntRange(98, 102).Draw(t, "health"))
			name[0] = rapid.SampledFrom([]byte("ab")).Draw(t, "name")
			compare(t, flat, &flats, id, &flatObject{health, rapid.Bool().Draw(t, "open")})
			compare(t, named, &names, id, &namedObject{health, name})
		}
	})
}

func compare[T any](t *rapid.T, typ *snapshot.Type[T], q *Quantizer[T], id uint16, v *T) {
	want := make([]int32, typ.Schema().Components())
	wantErr := typ.Quantize(want, v)
	row, err := q.Row(id, v)
	if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(row, want) {
		t.Fatalf("object %d, %+v: row %d, %v, want %d, %v", id, *v, row, err, want, wantErr)
	}
}
