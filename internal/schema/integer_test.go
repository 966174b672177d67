package schema

import (
	"errors"
	"math"
	"testing"
)

// TestIntegers verifies that a field of every width holds its whole range and no value beyond, and
// that setting one value does not change the others of its field.
func TestIntegers(t *testing.T) {
	for width := 1; width <= 64; width++ {
		lo, hi := int64(-1)<<(width-1), int64(1)<<(width-1)-1
		top := uint64(math.MaxUint64) >> (64 - width)
		ints, uints := []int64{lo, -1, hi, 0}, []uint64{top, 0, 1, top}
		s := mustSchema(t,
			Field{Name: "I", Kind: KindInt, Width: width, Count: len(ints)},
			Field{Name: "U", Kind: KindBits, Width: width, Count: len(uints)},
		)
		f := s.NewFrame()
		for k := range ints {
			must(t, errors.Join(s.SetInt(f, 0, k, ints[k]), s.SetUint(f, 1, k, uints[k])))
		}
		for k := range ints {
			if i, u := s.Int(f, 0, k), s.Uint(f, 1, k); i != ints[k] || u != uints[k] {
				t.Errorf("%d bits: %d and %d come back as %d and %d", width, ints[k], uints[k], i, u)
			}
		}
		must(t, s.Check(f))
		if width == 64 {
			continue
		}
		for _, err := range []error{
			s.SetInt(f, 0, 0, lo-1), s.SetInt(f, 0, 0, hi+1), s.SetInt(f, 0, 0, math.MinInt64),
			s.SetInt(f, 0, 0, math.MaxInt64), s.SetUint(f, 1, 0, top+1), s.SetUint(f, 1, 0, math.MaxUint64),
		} {
			if r := new(RangeError); !errors.As(err, &r) {
				t.Errorf("%d bits: a value beyond the range: %v", width, err)
			}
		}
	}
}

// TestIntegersAsNumbers verifies that an integer that is sent as a number is restored rounded and
// clamped to the range of its type.
func TestIntegersAsNumbers(t *testing.T) {
	type numbers struct {
		Thirds int32  `uplink:"kind=scalar,resolution=0.3"`
		Twos   int8   `uplink:"kind=scalar,resolution=2"`
		Tens   uint8  `uplink:"kind=scalar,resolution=10"`
		Signed uint16 `uplink:"kind=scalar,resolution=1"`
		Wide   int64  `uplink:"kind=scalar,resolution=1e15"`
		Most   uint64 `uplink:"kind=scalar,resolution=1e15"`
	}
	c := mustCompile[numbers](t)
	f := c.Schema().NewFrame()
	for _, v := range []struct{ in, want numbers }{
		{numbers{Thirds: 1}, numbers{Thirds: 1}},   // 0.9
		{numbers{Thirds: -1}, numbers{Thirds: -1}}, // -0.9
		{numbers{Twos: 127}, numbers{Twos: 127}},   // 128 is no int8
		{numbers{Twos: -128}, numbers{Twos: -128}},
		{numbers{Tens: 255}, numbers{Tens: 255}}, // 260 is no uint8
		{numbers{Tens: 4}, numbers{Tens: 0}},
		{numbers{Wide: math.MaxInt64}, numbers{Wide: 9223 * 1e15}},
		{numbers{Wide: math.MinInt64}, numbers{Wide: -9223 * 1e15}},
		{numbers{Most: math.MaxUint64}, numbers{Most: math.MaxUint64}}, // 18447e15 is no uint64
	} {
		var got numbers
		must(t, c.Quantize(f, &v.in))
		if err := c.Restore(&got, f); err != nil || got != v.want {
			t.Errorf("%+v comes back as %+v, %v", v.in, got, err)
		}
	}
	f.Ints[3] = -5
	var got numbers
	if err := c.Restore(&got, f); err != nil || got.Signed != 0 {
		t.Errorf("-5 comes back as %d, %v", got.Signed, err)
	}
}
