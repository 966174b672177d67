package trace_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
)

// everyKind has a field of each kind; its columns are generated.
func everyKind(t testing.TB) *schema.Schema {
	t.Helper()
	most := 8.0
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
		{Name: "Blob", Kind: schema.KindBytes, Max: &most},
	})
}

func newSchema(t testing.TB, fields []schema.Field) *schema.Schema {
	t.Helper()
	s, err := schema.New("Move", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wideSteps is about as many steps as a number may have either way.
const wideSteps = 2_000_000_000

// drawSchema draws a schema of one to six fields of any kind.
func drawSchema(t *rapid.T) *schema.Schema {
	fields := make([]schema.Field, rapid.IntRange(1, 6).Draw(t, "fields"))
	for i := range fields {
		fields[i] = drawField(t, "F"+string(rune('a'+i)))
	}
	s, err := schema.New("Move", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawField(t *rapid.T, name string) schema.Field {
	f := schema.Field{Name: name, Kind: rapid.SampledFrom([]schema.Kind{
		schema.KindVec2, schema.KindVec3, schema.KindScalar, schema.KindAngle, schema.KindQuat, schema.KindUnitVec,
		schema.KindUint, schema.KindInt, schema.KindBits, schema.KindBool, schema.KindFixed, schema.KindBytes,
	}).Draw(t, "kind")}
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		f.Resolution = rapid.OneOf(
			rapid.SampledFrom([]float64{1, 0.1, 0.01, 0.001, 1.0 / 32, 1.0 / 3, 100, 1e-20}),
			rapid.Float64Range(1e-6, 1e6),
		).Draw(t, "resolution")
		if rapid.Bool().Draw(t, "wide") {
			lo, hi := -wideSteps*f.Resolution, wideSteps*f.Resolution
			f.Min, f.Max = &lo, &hi
		}
	case schema.KindAngle:
		f.Bits = rapid.IntRange(2, 24).Draw(t, "bits")
		f.Count = rapid.IntRange(1, 3).Draw(t, "count")
	case schema.KindQuat, schema.KindUnitVec:
		f.Bits = rapid.IntRange(3, 20).Draw(t, "bits")
	case schema.KindUint, schema.KindInt, schema.KindBits:
		f.Width = rapid.IntRange(1, 64).Draw(t, "width")
		f.Count = rapid.IntRange(1, 3).Draw(t, "count")
	case schema.KindFixed:
		f.Size = rapid.IntRange(1, 9).Draw(t, "size")
	case schema.KindBytes:
		most := float64(rapid.IntRange(1, 9).Draw(t, "max"))
		f.Max = &most
	case schema.KindBool:
	}
	return f
}

// drawFrame draws values for every field and quantizes them.
func drawFrame(t *rapid.T, s *schema.Schema) *schema.Frame {
	frame := s.NewFrame()
	for i := range s.Fields() {
		if err := drawValues(t, s, frame, i); err != nil {
			t.Fatal(err)
		}
	}
	return frame
}

func drawValues(t *rapid.T, s *schema.Schema, frame *schema.Frame, i int) error {
	f := &s.Fields()[i]
	values := make([]float64, f.Values())
	switch f.Kind {
	case schema.KindFixed:
		return s.SetBytes(frame, i, rapid.SliceOfN(rapid.Byte(), f.Size, f.Size).Draw(t, "bytes"))
	case schema.KindBytes:
		return s.SetBytes(frame, i, rapid.SliceOfN(rapid.Byte(), 0, int(*f.Max)).Draw(t, "bytes"))
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		limit := int64(1<<23 - 1)
		if f.Max != nil {
			limit = wideSteps
		}
		for k := range values {
			values[k] = float64(rapid.Int64Range(-limit, limit).Draw(t, "steps")) * f.Resolution
		}
	case schema.KindAngle:
		for k := range values {
			values[k] = rapid.Float64Range(-1000, 1000).Draw(t, "degrees")
		}
	case schema.KindQuat, schema.KindUnitVec:
		values = drawDirection(t, len(values))
	case schema.KindInt:
		for k := range values {
			if err := s.SetInt(frame, i, k, rapid.Int64().Draw(t, "int")>>(64-f.Width)); err != nil {
				return err
			}
		}
		return nil
	case schema.KindUint, schema.KindBits, schema.KindBool:
		for k := range values {
			if err := s.SetUint(frame, i, k, rapid.Uint64().Draw(t, "uint")>>(64-f.Width)); err != nil {
				return err
			}
		}
		return nil
	}
	return s.QuantizeField(frame, i, values)
}

// drawDirection draws n numbers that are not all zero; axes, edges and diagonals, where directions are hard, are
// likely.
func drawDirection(t *rapid.T, n int) []float64 {
	part := rapid.OneOf(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1e-4}), rapid.Float64Range(-1, 1))
	values := make([]float64, n)
	sum := 0.0
	for k := range values {
		values[k] = part.Draw(t, "part")
		sum += math.Abs(values[k])
	}
	if sum < 1e-3 {
		values[0] = 1
	}
	return values
}
