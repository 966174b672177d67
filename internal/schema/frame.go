package schema

import (
	"bytes"
	"errors"
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
