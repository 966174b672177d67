package schema

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestRounding verifies the rule floor(v * (1/resolution) + 0.5), which rounds halves up.
func TestRounding(t *testing.T) {
	s := mustSchema(t,
		Field{Name: "One", Kind: KindScalar, Resolution: 1},
		Field{Name: "Tenth", Kind: KindScalar, Resolution: 0.1},
		Field{Name: "Third", Kind: KindScalar, Resolution: 3},
	)
	f := s.NewFrame()
	for _, c := range []struct {
		field int
		v     float64
		want  int32
	}{
		{0, 0, 0},
		{0, math.Copysign(0, -1), 0},
		{0, 0.5, 1},
		{0, math.Nextafter(0.5, 0), 1}, // the sum rounds up to 1, as in the engine
		{0, 0.49999, 0},
		{0, -0.5, 0},
		{0, -0.50001, -1},
		{0, -1.5, -1},
		{0, 2.5, 3},
		{0, 8388607.4, 1<<23 - 1},
		{0, -8388607.5, -1<<23 + 1},
		{1, 0.05, 1},
		{1, -0.05, 0},
		{1, 0.3, 3},
		{1, 838860.74, 1<<23 - 1},
		{2, 3.1, 1},
		{2, 4.6, 2},
		{2, -4.6, -2},
	} {
		if err := s.QuantizeField(f, c.field, []float64{c.v}); err != nil {
			t.Errorf("%v: %v", c.v, err)
		} else if got := f.Ints[c.field]; got != c.want {
			t.Errorf("%v of %s: %d, want %d", c.v, s.Fields()[c.field].Name, got, c.want)
		}
	}
}

// TestRestoredDecimals verifies that steps such as 0.1 are restored to the float64 nearest to the
// decimal number.
func TestRestoredDecimals(t *testing.T) {
	for _, c := range []struct{ resolution, v float64 }{
		{0.1, 0.3}, {0.1, -0.7}, {0.01, 0.29}, {0.001, 12.345}, {0.25, -8.75}, {5, 35}, {1e-6, 1.000001},
	} {
		s := mustSchema(t, Field{Name: "X", Kind: KindScalar, Resolution: c.resolution})
		f := s.NewFrame()
		must(t, s.QuantizeField(f, 0, []float64{c.v}))
		if got := s.RestoreField(nil, f, 0); len(got) != 1 || got[0] != c.v {
			t.Errorf("%v in steps of %v comes back as %v", c.v, c.resolution, got)
		}
	}
}

// TestRefusedValues verifies that the error of a value that cannot be quantized names the RPC, the
// field, the value and the limit.
func TestRefusedValues(t *testing.T) {
	for _, c := range []struct {
		field  Field
		values []float64
		value  string // in the error
		limit  string
	}{
		{Field{Kind: KindScalar, Resolution: 1}, []float64{nan}, "NaN", "a finite number"},
		{Field{Kind: KindScalar, Resolution: 1}, []float64{infinity}, "+Inf", "a finite number"},
		{Field{Kind: KindScalar, Resolution: 1}, []float64{1 << 23}, "8.388608e+06", "-8388607 to 8388607"},
		{Field{Kind: KindScalar, Resolution: 1}, []float64{-1 << 23}, "-8.388608e+06", "-8388607 to 8388607"},
		{Field{Kind: KindScalar, Resolution: 0.5, Min: new(-1.0), Max: new(2.0)}, []float64{2.25}, "2.25", "-1 to 2"},
		{Field{Kind: KindScalar, Resolution: 0.5, Min: new(-1.0), Max: new(2.0)}, []float64{-1.26}, "-1.26", "-1 to 2"},
		{Field{Kind: KindScalar, Resolution: 1, Count: 2}, []float64{0, 1e300}, "1e+300", "-8388607 to 8388607"},
		{Field{Kind: KindVec2, Resolution: 1}, []float64{0, nan}, "NaN", "a finite number"},
		{Field{Kind: KindVec3, Resolution: 1}, []float64{0, 0, -infinity}, "-Inf", "a finite number"},
		{Field{Kind: KindAngle}, []float64{nan}, "NaN", "a finite number"},
		{Field{Kind: KindAngle}, []float64{1e300}, "1e+300", "degrees that a float64 can still tell apart"},
		{Field{Kind: KindQuat}, []float64{0, 0, 0, nan}, "NaN", "a finite number"},
		{Field{Kind: KindQuat}, []float64{0, 0, 0, 0}, "(0, 0, 0, 0)", "a quaternion of a length above 0"},
		{Field{Kind: KindUnitVec}, []float64{0, 0, 0}, "(0, 0, 0)", "a direction of a length above 0"},
		{Field{Kind: KindUnitVec}, []float64{infinity, 0, 0}, "+Inf", "a finite number"},
		{Field{Kind: KindUint, Width: 8}, []float64{256}, "256", "0 to 255"},
		{Field{Kind: KindUint, Width: 8}, []float64{-1}, "-1", "0 to 255"},
		{Field{Kind: KindUint, Width: 8}, []float64{1.5}, "1.5", "a whole number"},
		{Field{Kind: KindUint, Width: 64}, []float64{1 << 64}, "1.8446744073709552e+19", "0 to 18446744073709549568"},
		{Field{Kind: KindInt, Width: 8}, []float64{128}, "128", "-128 to 127"},
		{Field{Kind: KindInt, Width: 8}, []float64{-129}, "-129", "-128 to 127"},
		{Field{Kind: KindInt, Width: 1}, []float64{1}, "1", "-1 to 0"},
		{Field{Kind: KindInt, Width: 64}, []float64{1 << 63}, "9.223372036854776e+18", "-9223372036854775808 to 9223372036854774784"},
		{Field{Kind: KindBool}, []float64{2}, "2", "0 to 1"},
		{Field{Kind: KindBits, Width: 3}, []float64{8}, "8", "0 to 7"},
	} {
		c.field.Name = "Odd"
		s := mustSchema(t, c.field)
		err := s.QuantizeField(s.NewFrame(), 0, c.values)
		var r *RangeError
		if !errors.As(err, &r) {
			t.Errorf("%v: %v: %v", c.field, c.values, err)
			continue
		}
		if r.RPC != "Test" || r.Field != "Odd" || fmt.Sprint(r.Value) != c.value || r.Limit != c.limit {
			t.Errorf("%v: %v: %+v, want the value %q and the limit %q", c.field, c.values, r, c.value, c.limit)
		}
		if want := fmt.Sprintf("schema: Test: field \"Odd\": value %s, want %s", c.value, c.limit); err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestRefusedLengths(t *testing.T) {
	s := mustSchema(t,
		Field{Name: "Fixed", Kind: KindFixed, Size: 3},
		Field{Name: "Free", Kind: KindBytes, Max: new(4.0)},
		Field{Name: "V", Kind: KindVec3, Resolution: 1},
	)
	f := s.NewFrame()
	for _, c := range []struct {
		field, length int
		limit         string // "": fits
	}{
		{0, 3, ""},
		{0, 2, "exactly 3"},
		{0, 4, "exactly 3"},
		{1, 0, ""},
		{1, 4, ""},
		{1, 5, "at most 4"},
	} {
		b := make([]byte, c.length)
		err := s.SetBytes(f, c.field, b)
		var r *RangeError
		if c.limit == "" && err != nil || c.limit != "" && (!errors.As(err, &r) || r.Limit != c.limit) {
			t.Errorf("%d bytes in %s: %v", c.length, s.Fields()[c.field].Name, err)
		}
		if got := s.BytesOf(f, c.field); err == nil && (len(got) != c.length || c.length > 0 && &got[0] == &b[0]) {
			t.Errorf("%d bytes come back as %d, or are not copied", c.length, len(got))
		}
	}
	for field, values := range [][]float64{{0}, {0}, {1, 2}} {
		if err := s.QuantizeField(f, field, values); err == nil || !strings.Contains(err.Error(), s.Fields()[field].Name) {
			t.Errorf("field %d with %d values: %v", field, len(values), err)
		}
	}
}

func TestAnglesWrap(t *testing.T) {
	s := mustSchema(t, Field{Name: "Yaw", Kind: KindAngle, Bits: 16})
	f := s.NewFrame()
	for _, c := range []struct {
		degrees float64
		want    int32
		back    float64
	}{
		{0, 0, 0},
		{90, 1 << 14, 90},
		{180, 1 << 15, -180},
		{-180, 1 << 15, -180},
		{179.999, 1 << 15, -180}, // rounds up to the half turn
		{179.99, 32766, 179.98901367},
		{-90, 3 << 14, -90},
		{270, 3 << 14, -90},
		{360, 0, 0},
		{-360, 0, 0},
		{359.999, 0, 0},
		{720.5, 91, 0.49987793}, // 0.5 is 91.02 steps
		{-719.5, 91, 0.49987793},
		{-0.5, 65445, -0.49987793},
		{1e9, 50972, -80.00244141}, // 2,777,777 turns and 280 degrees
	} {
		must(t, s.QuantizeField(f, 0, []float64{c.degrees}))
		if f.Ints[0] != c.want {
			t.Errorf("%v degrees: %d, want %d", c.degrees, f.Ints[0], c.want)
		}
		if back := s.RestoreField(nil, f, 0)[0]; back < c.back-1e-8 || back > c.back+1e-8 {
			t.Errorf("%v degrees come back as %.8f, want %.8f", c.degrees, back, c.back)
		}
	}
}

// TestComponentsRequantize verifies that every combination of components is restored to a value
// that quantizes to the same components, including those on the folds and the border of the square
// of a direction. Angles are restored to -180 to 180 degrees.
func TestComponentsRequantize(t *testing.T) {
	for _, field := range []Field{
		{Kind: KindAngle, Bits: 2},
		{Kind: KindAngle, Bits: 3},
		{Kind: KindAngle, Bits: 12},
		{Kind: KindUnitVec, Bits: 3},
		{Kind: KindUnitVec, Bits: 4},
		{Kind: KindUnitVec, Bits: 8},
	} {
		field.Name = "A"
		s := mustSchema(t, field)
		p := &s.layouts[0]
		f, again := s.NewFrame(), s.NewFrame()
		side := int(p.Hi-p.Lo) + 1
		for n := range int(math.Pow(float64(side), float64(p.N))) {
			f.Ints[0] = p.Lo + int32(n%side)
			if p.N > 1 {
				f.Ints[1] = p.Lo + int32(n/side)
			}
			back := s.RestoreField(nil, f, 0)
			if field.Kind == KindAngle && (back[0] < -180 || back[0] >= 180) {
				t.Fatalf("%v: %v is %v degrees", field, f.Ints, back)
			}
			if err := s.QuantizeField(again, 0, back); err != nil || !again.Equal(f) {
				t.Fatalf("%v: %v comes back as %v, %v", field, f.Ints, again.Ints, err)
			}
		}
	}
}

// TestRestoreIsExact checks that the restored bounds of a field whose scale is close to an integer
// are within the bounds: a relative error of 1e-9 is two steps of 2^31.
func TestRestoreIsExact(t *testing.T) {
	bound := -628.7359997072219
	s := mustSchema(t, Field{Name: "X", Kind: KindScalar, Resolution: 0.00029277801513671875 * 0.001, Min: &bound})
	f := s.NewFrame()
	f.Ints[0] = s.layouts[0].Lo
	restored := s.RestoreField(nil, f, 0)
	if err := s.QuantizeField(f, 0, restored); err != nil || f.Ints[0] != s.layouts[0].Lo {
		t.Errorf("%v: %v, %v", restored, f.Ints, err)
	}
}
