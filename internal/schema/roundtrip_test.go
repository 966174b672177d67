package schema_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestRequantize verifies that restored values quantize to the same frame. Quaternions, which do so
// only with exceptions, have their own test.
func TestRequantize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		s := pick.Schema()
		f, again := s.NewFrame(), s.NewFrame()
		pick.Frame(s, f, s.NewFrame())
		for i := range s.Fields() {
			switch field := &s.Fields()[i]; {
			case field.IsBytes():
				if err := s.SetBytes(again, i, s.BytesOf(f, i)); err != nil {
					t.Fatal(err)
				}
			case field.Kind == schema.KindQuat, field.Width > 53:
				p := &s.Layouts()[i]
				copy(again.Ints[p.At:p.At+p.N], f.Ints[p.At:])
			default:
				if err := s.QuantizeField(again, i, s.RestoreField(nil, f, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !again.Equal(f) {
			t.Fatalf("%v comes back as %v", f.Ints, again.Ints)
		}
	})
}

// TestSchemaFileRoundTrip verifies that Parse returns the schema that AppendJSON wrote.
func TestSchemaFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.FromRapid(t).Schema()
		file, err := s.AppendJSON([]byte("\n"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := schema.Parse(file)
		if err != nil {
			t.Fatalf("%v in %s", err, file)
		}
		if again.Fingerprint() != s.Fingerprint() || again.RateHz() != s.RateHz() {
			t.Fatalf("%s comes back as %v", file, again.Fields())
		}
		for i := range s.Fields() {
			if !slices.Equal(s.Fields()[i].Columns, again.Fields()[i].Columns) {
				t.Fatalf("columns of %v", s.Fields()[i])
			}
		}
	})
}
