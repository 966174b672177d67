package rpcdelta

import (
	"bytes"
	"slices"
)

// Frame is one call's arguments after quantization: a fixed row of integer
// components, and the byte strings. Make one with [Schema.NewFrame]; its
// lengths belong to the schema. Not safe for concurrent use.
type Frame struct {
	// Ints holds the components of every numeric field, in field order.
	// Unsigned values of 32 bits are stored as their two's complement; wider
	// ones take two components, the low half first.
	Ints []int32
	// Bytes holds the byte strings, in field order.
	Bytes [][]byte
}

// CopyFrom makes f equal to o, which must be of the same schema. Nothing is
// allocated once f's byte strings have room.
func (f *Frame) CopyFrom(o *Frame) {
	copy(f.Ints, o.Ints)
	for i, b := range o.Bytes {
		f.Bytes[i] = append(f.Bytes[i][:0], b...)
	}
}

// Equal says whether both frames hold the same components and byte strings.
func (f *Frame) Equal(o *Frame) bool {
	return slices.Equal(f.Ints, o.Ints) && slices.EqualFunc(f.Bytes, o.Bytes, bytes.Equal)
}

// hash folds the frame into 16 bits. Both ends compare it once a second.
func (f *Frame) hash() uint16 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	h := uint64(offset)
	for _, v := range f.Ints {
		h = (h ^ uint64(uint32(v))) * prime
	}
	for _, b := range f.Bytes {
		h = (h ^ uint64(len(b))) * prime
		for _, c := range b {
			h = (h ^ uint64(c)) * prime
		}
	}
	return uint16(h ^ h>>16 ^ h>>32 ^ h>>48)
}

// newFrames gives n frames of the schema whose components lie in one array.
func (s *Schema) newFrames(n int) []Frame {
	frames := make([]Frame, n)
	ints := make([]int32, n*s.ints)
	strs := make([][]byte, n*s.blobs)
	for i := range frames {
		frames[i].Ints = ints[i*s.ints : (i+1)*s.ints : (i+1)*s.ints]
		frames[i].Bytes = strs[i*s.blobs : (i+1)*s.blobs : (i+1)*s.blobs]
	}
	return frames
}

// NewFrame gives a frame of the schema with every component zero and every
// byte string of variable length empty.
func (s *Schema) NewFrame() *Frame {
	f := &s.newFrames(1)[0]
	s.Zero(f)
	return f
}

// Zero sets every component to zero and every byte string to its shortest.
func (s *Schema) Zero(f *Frame) {
	clear(f.Ints)
	for i := range s.plans {
		if p := &s.plans[i]; p.class == classBlob {
			b := append(f.Bytes[p.blob][:0], make([]byte, p.minBytes)...)
			f.Bytes[p.blob] = b
		}
	}
}
