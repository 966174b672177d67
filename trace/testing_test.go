package trace_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// everyKind has a field of each kind; its columns are generated.
func everyKind(t testing.TB) *rpcdelta.Schema {
	t.Helper()
	most := 8.0
	lo, hi := -1000.0, 1e9
	return newSchema(t, []rpcdelta.Field{
		{Name: "Location", Kind: rpcdelta.KindVec3, Resolution: 0.1},
		{Name: "Flat", Kind: rpcdelta.KindVec2, Resolution: 1.0 / 3},
		{Name: "Wide", Kind: rpcdelta.KindScalar, Resolution: 1, Min: &lo, Max: &hi},
		{Name: "View", Kind: rpcdelta.KindAngle, Count: 3},
		{Name: "Rotation", Kind: rpcdelta.KindQuat},
		{Name: "Aim", Kind: rpcdelta.KindUnitVec},
		{Name: "Big", Kind: rpcdelta.KindUint, Width: 64},
		{Name: "Small", Kind: rpcdelta.KindInt, Width: 7, Count: 2},
		{Name: "Far", Kind: rpcdelta.KindInt, Width: 64},
		{Name: "Buttons", Kind: rpcdelta.KindBits, Width: 16},
		{Name: "On", Kind: rpcdelta.KindBool},
		{Name: "ID", Kind: rpcdelta.KindFixed, Size: 3},
		{Name: "Blob", Kind: rpcdelta.KindBytes, Max: &most},
	})
}

func newSchema(t testing.TB, fields []rpcdelta.Field) *rpcdelta.Schema {
	t.Helper()
	s, err := rpcdelta.NewSchema("Move", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wideSteps is about as many steps as a number may have either way.
const wideSteps = 2_000_000_000

// drawSchema draws a schema of one to six fields of any kind.
func drawSchema(t *rapid.T) *rpcdelta.Schema {
	fields := make([]rpcdelta.Field, rapid.IntRange(1, 6).Draw(t, "fields"))
	for i := range fields {
		fields[i] = drawField(t, "F"+string(rune('a'+i)))
	}
	s, err := rpcdelta.NewSchema("Move", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawField(t *rapid.T, name string) rpcdelta.Field {
	f := rpcdelta.Field{Name: name, Kind: rapid.SampledFrom([]rpcdelta.Kind{
		rpcdelta.KindVec2, rpcdelta.KindVec3, rpcdelta.KindScalar, rpcdelta.KindAngle, rpcdelta.KindQuat, rpcdelta.KindUnitVec,
		rpcdelta.KindUint, rpcdelta.KindInt, rpcdelta.KindBits, rpcdelta.KindBool, rpcdelta.KindFixed, rpcdelta.KindBytes,
	}).Draw(t, "kind")}
	switch f.Kind {
	case rpcdelta.KindVec2, rpcdelta.KindVec3, rpcdelta.KindScalar:
		f.Resolution = rapid.OneOf(
			rapid.SampledFrom([]float64{1, 0.1, 0.01, 0.001, 1.0 / 32, 1.0 / 3, 100, 1e-20}),
			rapid.Float64Range(1e-6, 1e6),
		).Draw(t, "resolution")
		if rapid.Bool().Draw(t, "wide") {
			lo, hi := -wideSteps*f.Resolution, wideSteps*f.Resolution
			f.Min, f.Max = &lo, &hi
		}
	case rpcdelta.KindAngle:
		f.Bits = rapid.IntRange(2, 24).Draw(t, "bits")
		f.Count = rapid.IntRange(1, 3).Draw(t, "count")
	case rpcdelta.KindQuat, rpcdelta.KindUnitVec:
		f.Bits = rapid.IntRange(3, 20).Draw(t, "bits")
	case rpcdelta.KindUint, rpcdelta.KindInt, rpcdelta.KindBits:
		f.Width = rapid.IntRange(1, 64).Draw(t, "width")
		f.Count = rapid.IntRange(1, 3).Draw(t, "count")
	case rpcdelta.KindFixed:
		f.Size = rapid.IntRange(1, 9).Draw(t, "size")
	case rpcdelta.KindBytes:
		most := float64(rapid.IntRange(1, 9).Draw(t, "max"))
		f.Max = &most
	case rpcdelta.KindBool:
	}
	return f
}

// drawFrame draws values for every field and quantizes them.
func drawFrame(t *rapid.T, s *rpcdelta.Schema) *rpcdelta.Frame {
	frame := s.NewFrame()
	for i := range s.Fields() {
		if err := drawValues(t, s, frame, i); err != nil {
			t.Fatal(err)
		}
	}
	return frame
}

func drawValues(t *rapid.T, s *rpcdelta.Schema, frame *rpcdelta.Frame, i int) error {
	f := &s.Fields()[i]
	values := make([]float64, f.Values())
	switch f.Kind {
	case rpcdelta.KindFixed:
		return s.SetBytes(frame, i, rapid.SliceOfN(rapid.Byte(), f.Size, f.Size).Draw(t, "bytes"))
	case rpcdelta.KindBytes:
		return s.SetBytes(frame, i, rapid.SliceOfN(rapid.Byte(), 0, int(*f.Max)).Draw(t, "bytes"))
	case rpcdelta.KindVec2, rpcdelta.KindVec3, rpcdelta.KindScalar:
		limit := int64(1<<23 - 1)
		if f.Max != nil {
			limit = wideSteps
		}
		for k := range values {
			values[k] = float64(rapid.Int64Range(-limit, limit).Draw(t, "steps")) * f.Resolution
		}
	case rpcdelta.KindAngle:
		for k := range values {
			values[k] = rapid.Float64Range(-1000, 1000).Draw(t, "degrees")
		}
	case rpcdelta.KindQuat, rpcdelta.KindUnitVec:
		values = drawDirection(t, len(values))
	case rpcdelta.KindInt:
		for k := range values {
			if err := s.SetInt(frame, i, k, rapid.Int64().Draw(t, "int")>>(64-f.Width)); err != nil {
				return err
			}
		}
		return nil
	case rpcdelta.KindUint, rpcdelta.KindBits, rpcdelta.KindBool:
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
