package trace_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// written returns a file with the given frames.
func written(t testing.TB, name string, s *schema.Schema, frames ...*schema.Frame) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, name, s)
	must(t, err)
	for _, f := range frames {
		must(t, w.Write(f))
	}
	must(t, w.Close())
	return &file
}

// everyKind returns a schema with a field of each kind and generated columns.
func everyKind(t testing.TB) *schema.Schema {
	t.Helper()
	limit := 8.0
	lo, hi := -1000.0, 1e9
	return newSchema(t, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1},
		{Name: "Flat", Kind: schema.KindVec2, Resolution: 1.0 / 3},
		{Name: "Wide", Kind: schema.KindScalar, Resolution: 1, Min: &lo, Max: &hi},
		{Name: "View", Kind: schema.KindAngle, Count: 3},
		{Name: "Rotation", Kind: schema.KindQuat},
		{Name: "Aim", Kind: schema.KindUnitVec},
		{Name: "Big", Kind: schema.KindUint, Width: 64},
		{Name: "Small", Kind: schema.KindInt, Width: 7, Count: 2},
		{Name: "Far", Kind: schema.KindInt, Width: 64},
		{Name: "Buttons", Kind: schema.KindBits, Width: 16},
		{Name: "On", Kind: schema.KindBool},
		{Name: "ID", Kind: schema.KindFixed, Size: 3},
		{Name: "Blob", Kind: schema.KindBytes, Max: &limit},
	})
}

func newSchema(t testing.TB, fields []schema.Field) *schema.Schema {
	t.Helper()
	s, err := schema.New("Move", 60, fields)
	must(t, err)
	return s
}

// must fails a test if there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drawSchema draws a schema of one to six fields, with resolutions that are hard to write as text.
func drawSchema(t *rapid.T) *schema.Schema {
	fields := slices.Clone(schematest.FromRapid(t).Schema().Fields())
	for i := range fields {
		f := &fields[i]
		if f.Resolution == 0 {
			continue
		}
		scale := rapid.OneOf(
			rapid.SampledFrom([]float64{1, 0.1, 0.01, 1.0 / 32, 1.0 / 3, 100, 1e-20}),
			rapid.Float64Range(1e-6, 1e6),
		).Draw(t, "scale")
		f.Resolution *= scale
		if f.Min != nil {
			f.Min, f.Max = new(*f.Min*scale), new(*f.Max*scale)
		}
	}
	s, err := schema.New("Move", 60, fields)
	must(t, err)
	return s
}

// drawFrame draws a frame. Its rotations are restored and quantized once, since only these
// components are stable.
func drawFrame(t *rapid.T, s *schema.Schema) *schema.Frame {
	f := s.NewFrame()
	schematest.FromRapid(t).Frame(s, f, s.NewFrame())
	for i := range s.Fields() {
		if s.Fields()[i].Kind == schema.KindQuat {
			must(t, s.QuantizeField(f, i, s.RestoreField(nil, f, i)))
		}
	}
	return f
}
