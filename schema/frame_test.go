package schema

import (
	"errors"
	"testing"
)

// TestCheck verifies that Check rejects frames of another shape and components and byte strings
// that are out of range by one.
func TestCheck(t *testing.T) {
	s := mustSchema(t,
		Field{Name: "P", Kind: KindVec2, Resolution: 1, Max: number(100)},
		Field{Name: "Q", Kind: KindQuat, Bits: 4},
		Field{Name: "A", Kind: KindAngle, Bits: 4},
		Field{Name: "U", Kind: KindUint, Width: 4},
		Field{Name: "I", Kind: KindInt, Width: 40},
		Field{Name: "F", Kind: KindFixed, Size: 2},
		Field{Name: "B", Kind: KindBytes, Max: number(2)},
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
	s := mustSchema(t,
		Field{Name: "U", Kind: KindUint, Width: 8, Count: 2},
		Field{Name: "F", Kind: KindFixed, Size: 2},
		Field{Name: "B", Kind: KindBytes, Max: number(9)},
	)
	frames := s.NewFrames(2)
	a, b := &frames[0], &frames[1]
	s.Zero(a)
	a.Ints[1] = 7
	a.Bytes[1] = append(a.Bytes[1], "text"...)
	b.CopyFrom(a)
	if !b.Equal(a) || b.Ints[1] != 7 || len(b.Bytes[0]) != 2 || string(b.Bytes[1]) != "text" {
		t.Fatalf("got %v, want %v", b, a)
	}
	a.Bytes[1][0] = 'n'
	if b.Equal(a) || string(b.Bytes[1]) != "text" {
		t.Errorf("the copy shares bytes: %s", b.Bytes[1])
	}
	if n := testing.AllocsPerRun(10, func() { b.CopyFrom(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if a.Ints[0] = 1; b.Ints[0] != 0 || b.Equal(a) {
		t.Error("the copy shares components")
	}
	s.Zero(b)
	if !b.Equal(s.NewFrame()) {
		t.Errorf("got %v after Zero", b)
	}
}
