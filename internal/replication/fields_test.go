package replication

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestParseFields checks that a client can derive the schema of objects from an offer.
func TestParseFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.FromRapid(t).Schema()
		want := Fields(s)
		got, _, err := ParseFields(s.RPC(), want)
		if got == nil { // objects may have too many components
			t.Fatalf("%q: %v", want, err)
		}
		if !slices.Equal(Fields(got), want) || got.Components() != s.Components() {
			t.Fatalf("%q, want %q", Fields(got), want)
		}
	})
}

func FuzzFields(f *testing.F) {
	f.Add("At vec3 resolution=0.01 steps=-100..100")
	f.Add("Name bytes max=8")
	f.Add("Turn quat bits=9 velocity=Spin velocity_scale=2")
	f.Fuzz(func(t *testing.T, field string) {
		s, _, err := ParseFields("objects", []string{field})
		if err == nil && !slices.Equal(Fields(s), []string{field}) {
			t.Fatalf("%q is read as %q", field, Fields(s))
		}
	})
}
