package versions

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestParse checks that a schema follows from the descriptions of its fields.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.FromRapid(t).Schema()
		want := Descriptions(s)
		got, err := Parse(s.RPC(), want)
		if err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		if !slices.Equal(Descriptions(got), want) || got.Components() != s.Components() || got.Fingerprint() != s.Fingerprint() {
			t.Fatalf("%q, want %q", Descriptions(got), want)
		}
	})
}

func FuzzFields(f *testing.F) {
	f.Add("At vec3 resolution=0.01 steps=-100..100")
	f.Add("Name bytes max=8")
	f.Add("Turn quat bits=9 velocity=Spin velocity_scale=2")
	f.Fuzz(func(t *testing.T, field string) {
		s, err := Parse("objects", []string{field})
		if err == nil && !slices.Equal(Descriptions(s), []string{field}) {
			t.Fatalf("%q is read as %q", field, Descriptions(s))
		}
	})
}
