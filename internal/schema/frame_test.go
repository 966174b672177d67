package schema

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// TestCheck verifies that Check rejects frames of another shape and components and byte strings
// that are out of range by one.
func TestCheck(t *testing.T) {
	s := mustSchema(t,
		Field{Name: "P", Kind: KindVec2, Resolution: 1, Max: new(100.0)},
		Field{Name: "Q", Kind: KindQuat, Bits: 4},
		Field{Name: "A", Kind: KindAngle, Bits: 4},
		Field{Name: "U", Kind: KindUint, Width: 4},
		Field{Name: "I", Kind: KindInt, Width: 40},
		Field{Name: "F", Kind: KindFixed, Size: 2},
		Field{Name: "B", Kind: KindBytes, Max: new(2.0)},
	)
	for _, c := range []struct {
		field  string // "": ErrFrame
		change func(f *Frame)
	}{
		{"", func(f *Frame) { f.Ints = f.Ints[1:] }},
		{"", func(f *Frame) { f.Bytes = nil }},
		{"P", func(f *Frame) { f.Ints[1] = 101 }},
		{"Q", func(f *Frame) { f.Ints[2] = 4 }},
		{"Q", func(f *Frame) { f.Ints[2] = -1 }},
		{"Q", func(f *Frame) { f.Ints[4] = -8 }},
		{"A", func(f *Frame) { f.Ints[6] = 16 }},
		{"A", func(f *Frame) { f.Ints[6] = -1 }},
		{"U", func(f *Frame) { f.Ints[7] = 16 }},
		{"U", func(f *Frame) { f.Ints[7] = -1 }},
		{"I", func(f *Frame) { f.Ints[9] = 128 }},
		{"I", func(f *Frame) { f.Ints[9] = -129 }},
		{"F", func(f *Frame) { f.Bytes[0] = f.Bytes[0][:1] }},
		{"B", func(f *Frame) { f.Bytes[1] = make([]byte, 3) }},
	} {
		f := s.NewFrame()
		must(t, s.Check(f))
		c.change(f)
		err := s.Check(f)
		var r *RangeError
		if c.field == "" && !errors.Is(err, ErrFrame) || c.field != "" && (!errors.As(err, &r) || r.Field != c.field) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// TestCopyFrom verifies that a copy is equal, independent of the original and made in place.
func TestCopyFrom(t *testing.T) {
	s := mustSchema(t, Field{Name: "U", Kind: KindUint, Width: 8}, Field{Name: "B", Kind: KindBytes, Max: new(9.0)})
	frames := s.NewFrames(2)
	a, b := &frames[0], &frames[1]
	a.Ints[0], a.Bytes[0] = 7, []byte("text")
	b.CopyFrom(a)
	if n := allocs.PerRun(10, func() { b.CopyFrom(a) }); n != 0 || !b.Equal(a) {
		t.Fatalf("got %v, want %v; %v allocations", b, a, n)
	}
	if a.Bytes[0][0] = 'n'; b.Equal(a) || string(b.Bytes[0]) != "text" {
		t.Errorf("the copy shares bytes: %s", b.Bytes[0])
	}
	b.CopyFrom(a)
	if a.Ints[0] = 1; b.Equal(a) || b.Ints[0] != 7 {
		t.Error("the copy shares components")
	}
	if s.Zero(b); !b.Equal(s.NewFrame()) {
		t.Errorf("got %v after Zero", b)
	}
}
