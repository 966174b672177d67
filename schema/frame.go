package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// ErrFrame reports that a frame does not have the shape of its schema.
var ErrFrame = errors.New("schema: frame of another schema")

// Frame holds the quantized values of one call or object: a fixed number of integer components, and
// the byte strings. [Schema.NewFrame] returns one. Not safe for concurrent use.
type Frame struct {
	// Ints holds the components of every numeric field, in field order. Unsigned values of 32 bits
	// are stored in two's complement. A value wider than 32 bits has two components, the low half
	// first.
	Ints []int32
	// Bytes holds the byte strings, in field order.
	Bytes [][]byte
}

// CopyFrom copies o, a frame of the same schema, to f. It allocates only if the byte strings of f
// lack capacity.
func (f *Frame) CopyFrom(o *Frame) {
	copy(f.Ints, o.Ints)
	for i, b := range o.Bytes {
		f.Bytes[i] = append(f.Bytes[i][:0], b...)
	}
}

// Equal reports whether both frames hold the same components and byte strings.
func (f *Frame) Equal(o *Frame) bool {
	return slices.Equal(f.Ints, o.Ints) && slices.EqualFunc(f.Bytes, o.Bytes, bytes.Equal)
}

// NewFrames returns n frames whose components share one array. All components are 0 and all byte
// strings are nil; see [Schema.Zero].
func (s *Schema) NewFrames(n int) []Frame {
	frames := make([]Frame, n)
	ints := make([]int32, n*s.ints)
	strs := make([][]byte, n*s.blobs)
	for i := range frames {
		frames[i].Ints = ints[i*s.ints : (i+1)*s.ints : (i+1)*s.ints]
		frames[i].Bytes = strs[i*s.blobs : (i+1)*s.blobs : (i+1)*s.blobs]
	}
	return frames
}

// NewFrame returns a frame with every component 0 and every byte string at its minimum length.
func (s *Schema) NewFrame() *Frame {
	f := &s.NewFrames(1)[0]
	s.Zero(f)
	return f
}

// Zero sets every component of f to 0 and every byte string to zeros of its minimum length.
func (s *Schema) Zero(f *Frame) {
	clear(f.Ints)
	for i := range s.layouts {
		if p := &s.layouts[i]; p.Class == ClassBytes {
			f.Bytes[p.Blob] = append(f.Bytes[p.Blob][:0], make([]byte, p.MinBytes)...)
		}
	}
}

// bounds is the range of a component: its minimum, and the difference of maximum and minimum.
type bounds struct {
	lo   int32
	span uint32
}

func (s *Schema) compileBounds() {
	for i := range s.layouts {
		p := &s.layouts[i]
		for k := range p.N {
			lo, hi := p.ComponentRange(k)
			s.bounds = append(s.bounds, bounds{int32(lo), uint32(hi - lo)})
		}
	}
}

// Check returns an error if f is not a frame of the schema: [ErrFrame] if its shape differs, a
// [*RangeError] if a component or the length of a byte string is out of range.
func (s *Schema) Check(f *Frame) error {
	if len(f.Ints) != s.ints || len(f.Bytes) != s.blobs {
		return fmt.Errorf("%w: %s has %d components and %d byte strings, the frame %d and %d",
			ErrFrame, s.rpc, s.ints, s.blobs, len(f.Ints), len(f.Bytes))
	}
	bounds := s.bounds[:len(f.Ints)]
	beyond := int64(0) // negative if a component is out of range
	for i, v := range f.Ints {
		b := &bounds[i]
		beyond |= int64(b.span) - int64(uint32(v-b.lo))
	}
	if beyond >= 0 && s.blobs == 0 {
		return nil
	}
	for i := range s.layouts {
		p := &s.layouts[i]
		if p.Class == ClassBytes {
			if n := len(f.Bytes[p.Blob]); beyond >= 0 && (n < p.MinBytes || n > p.MaxBytes) {
				return s.rangeError(p.Field, fmt.Sprintf("%d bytes", n), p.bytesLimit())
			}
			continue
		}
		if beyond >= 0 {
			continue
		}
		for k, v := range f.Ints[p.At:][:p.N] {
			if !p.Holds(k, v) {
				return s.rangeError(p.Field, v, p.componentLimit(k))
			}
		}
	}
	return nil
}
