// Package packed codes frames as game engines pack them: numbers in groups of one width, as Unreal
// Engine's packed vectors, and the XOR of all other fields run-length coded. It is the codec rle,
// and the measure of how large frames are without any codec.
package packed

import (
	"encoding/binary"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/schema"
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

// plan is the layout of a field with the data that the codecs derive from it.
type plan struct {
	schema.Layout
	max   uint32      // maximum of the group header
	sizes *[32]uint16 // numbers: see groupSizes
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

// FieldBits returns field i's part of FullBits.
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

// numberBits returns the size in bits of the numbers of the field without a baseline.
func (p *plan) numberBits(f *schema.Frame) int {
	switch p.Class {
	case schema.ClassNumber:
		return int(p.sizes[lengthOf(f.Ints[p.At:][:p.N])])
	case schema.ClassAngle:
		n := 0
		for _, x := range f.Ints[p.At:][:p.N] {
			n += 1 + int(p.Bits)&int(mask(x))
		}
		return n
	case schema.ClassQuat:
		return 2 + 3*int(p.Bits)
	default:
		return 0
	}
}

// mask returns -1 if x is not 0, and 0 otherwise.
func mask(x int32) int32 { return (x | -x) >> 31 }

// groupSizes returns the size in bits of the group by the length of its largest magnitude.
func (p *plan) groupSizes() *[32]uint16 {
	t := new([32]uint16)
	for length := range p.max + 1 {
		t[length] = uint16(groupBits(p.N, max(length, 1)-1, p.max))
	}
	return t
}

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

func (p *plan) parseIntegers(cur, base *schema.Frame, src []byte) ([]byte, bool) {
	for k := range p.N {
		n := p.componentBytes(k)
		if len(src) < n {
			return nil, false
		}
		v := uint32(0)
		for i, b := range src[:n] {
			v |= uint32(b) << (8 * i)
		}
		src = src[n:]
		if base != nil {
			v ^= uint32(base.Ints[p.At+k])
		}
		shift := 32 - 8*n
		x := int32(v << shift >> shift) // without the sign bits of the baseline
		if p.Signed {
			x = int32(v<<shift) >> shift
		}
		if !p.Holds(k, x) {
			return nil, false
		}
		cur.Ints[p.At+k] = x
	}
	return src, true
}

func (p *plan) parseBlob(cur, base *schema.Frame, src []byte) ([]byte, bool) {
	size := p.MaxBytes
	if p.LengthBytes() > 0 {
		v, n := binary.Uvarint(src)
		if n <= 0 || n != uvarintLen(int(min(v, schema.MaxBytes))) || v > uint64(p.MaxBytes) {
			return nil, false
		}
		size, src = int(v), src[n:]
	}
	if len(src) < size {
		return nil, false
	}
	b := append(cur.Bytes[p.Blob][:0], src[:size]...)
	if base != nil {
		xor(b, base.Bytes[p.Blob])
	}
	cur.Bytes[p.Blob] = b
	return src[size:], true
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
