// Package packed codes frames as game engines pack them: numbers in groups of one width, like
// Unreal Engine's packed vectors, and all other fields as run-length coded XOR with the baseline.
// It implements the codec rle, and measures the uncompressed size of frames.
package packed

import (
	"encoding/binary"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Maximum headers of groups, see [groupHeader]: for numbers within the default bounds, and for
// numbers with wider bounds.
const (
	groupMax     = 24
	wideGroupMax = 31
)

// Format holds the data that the codec derives from a schema. All encoders and decoders of a schema
// share one. Safe for concurrent use.
type Format struct {
	*schema.Schema
	plans []plan
}

type formatKey struct{}

// Of returns the format of a schema.
func Of(s *schema.Schema) *Format {
	return s.Derived(formatKey{}, func(s *schema.Schema) any { return newFormat(s) }).(*Format)
}

func newFormat(s *schema.Schema) *Format {
	f := &Format{Schema: s}
	for _, l := range s.Layouts() {
		p := plan{Layout: l, max: groupMax}
		if l.Class == schema.ClassNumber {
			if l.Lo < -1<<23 || l.Hi >= 1<<23 {
				p.max = wideGroupMax
			}
			p.sizes = p.groupSizes()
		}
		f.plans = append(f.plans, p)
	}
	return f
}

// FullBits returns the size in bits of a frame as a game engine sends it: numbers as a packed
// vector, all other fields uncompressed, and no differences. It does not allocate.
func (x *Format) FullBits(f *schema.Frame) (n int) {
	for i := range x.plans {
		if p := &x.plans[i]; p.sizes != nil {
			n += int(p.sizes[lengthOf(f.Ints[p.At:][:p.N])])
		} else {
			n += x.FieldBits(i, f)
		}
	}
	return n
}

// lengthOf returns the length in bits of the largest magnitude.
func lengthOf(ints []int32) int {
	m := uint32(0)
	for _, x := range ints {
		m |= uint32(max(x, -x))
	}
	return bits.Len32(m) & 31
}

// FieldBits returns the contribution of field i to FullBits, in bits.
func (x *Format) FieldBits(i int, f *schema.Frame) int {
	switch p := &x.plans[i]; p.Class {
	case schema.ClassInteger:
		return 8 * p.Values() * p.ValueBytes()
	case schema.ClassBytes:
		n := 8 * len(f.Bytes[p.Blob])
		if p.LengthBytes() > 0 {
			n += 8 * uvarintLen(len(f.Bytes[p.Blob]))
		}
		return n
	default:
		return p.numberBits(f)
	}
}

// mask returns -1 if x is not 0, and 0 otherwise.
func mask(x int32) int32 { return (x | -x) >> 31 }

// parseBinary decodes all of src into the integers and byte strings of cur.
func (s *Format) parseBinary(cur, base *schema.Frame, src []byte) error {
	for i := range s.plans {
		var ok bool
		switch p := &s.plans[i]; p.Class {
		case schema.ClassInteger:
			src, ok = p.parseIntegers(cur, base, src)
		case schema.ClassBytes:
			src, ok = p.parseBlob(cur, base, src)
		default:
			ok = true
		}
		if !ok {
			return wire.Malformed("the binary part does not hold %s", s.Fields()[i].Name)
		}
	}
	if len(src) != 0 {
		return wire.Malformed("the binary part has %d bytes too many", len(src))
	}
	return nil
}

// BinarySize returns the size in bytes of the binary part of f before run-length coding.
func (s *Format) BinarySize(f *schema.Frame) int { return len(s.appendBinary(nil, f, nil)) }

// appendBinary appends the integers and byte strings of cur, XORed with those of base unless base
// is nil.
func (s *Format) appendBinary(dst []byte, cur, base *schema.Frame) []byte {
	for i := range s.plans {
		switch p := &s.plans[i]; p.Class {
		case schema.ClassInteger:
			for k := range p.N {
				v := uint32(cur.Ints[p.At+k])
				if base != nil {
					v ^= uint32(base.Ints[p.At+k])
				}
				for range p.componentBytes(k) {
					dst = append(dst, byte(v))
					v >>= 8
				}
			}
		case schema.ClassBytes:
			b := cur.Bytes[p.Blob]
			if p.LengthBytes() > 0 {
				dst = binary.AppendUvarint(dst, uint64(len(b)))
			}
			at := len(dst)
			dst = append(dst, b...)
			if base != nil {
				xor(dst[at:], base.Bytes[p.Blob])
			}
		default:
		}
	}
	return dst
}
