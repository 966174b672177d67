package schema

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestIntegerExtremes verifies that a field of every width holds its whole range and no value
// beyond.
func TestIntegerExtremes(t *testing.T) {
	for width := 1; width <= 64; width++ {
		s := mustSchema(t,
			Field{Name: "I", Kind: KindInt, Width: width, Count: 2},
			Field{Name: "U", Kind: KindUint, Width: width, Count: 2},
		)
		f := s.NewFrame()
		lo, hi := int64(-1)<<(width-1), int64(1)<<(width-1)-1
		top := uint64(math.MaxUint64) >> (64 - width)
		for k := range 2 {
			for _, v := range []int64{0, -1, lo, hi} {
				if err := s.SetInt(f, 0, k, v); err != nil || s.Int(f, 0, k) != v {
					t.Errorf("int of %d bits: %d comes back as %d, %v", width, v, s.Int(f, 0, k), err)
				}
			}
			for _, v := range []uint64{0, 1, top} {
				if err := s.SetUint(f, 1, k, v); err != nil || s.Uint(f, 1, k) != v {
					t.Errorf("uint of %d bits: %d comes back as %d, %v", width, v, s.Uint(f, 1, k), err)
				}
			}
		}
		if err := s.Check(f); err != nil {
			t.Errorf("%d bits: %v", width, err)
		}
		if width == 64 {
			continue
		}
		var r *RangeError
		for _, v := range []int64{lo - 1, hi + 1, math.MinInt64, math.MaxInt64} {
			if err := s.SetInt(f, 0, 0, v); !errors.As(err, &r) || r.Field != "I" {
				t.Errorf("int of %d bits takes %d: %v", width, v, err)
			}
		}
		for _, v := range []uint64{top + 1, math.MaxUint64} {
			if err := s.SetUint(f, 1, 0, v); !errors.As(err, &r) || r.Field != "U" {
				t.Errorf("uint of %d bits takes %d: %v", width, v, err)
			}
		}
	}
}

// TestIntegerNeighbors verifies that setting one value does not change the others of its field.
func TestIntegerNeighbors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 64).Draw(t, "width")
		s, err := New("Test", 60, []Field{{Name: "U", Kind: KindBits, Width: width, Count: 4}})
		must(t, err)
		f := s.NewFrame()
		var want [4]uint64
		for range 8 {
			k := rapid.IntRange(0, 3).Draw(t, "k")
			want[k] = rapid.Uint64Max(uint64(math.MaxUint64)>>(64-width)).Draw(t, "v")
			must(t, s.SetUint(f, 0, k, want[k]))
			for k, v := range want {
				if got := s.Uint(f, 0, k); got != v {
					t.Fatalf("value %d is %d, want %d", k, got, v)
				}
			}
		}
	})
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
