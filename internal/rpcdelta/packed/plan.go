package packed

import (
	"encoding/binary"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// plan is the layout of a field with the data that the codecs derive from it.
type plan struct {
	schema.Layout
	max   uint32      // maximum of the group header
	sizes *[32]uint16 // numbers: see groupSizes
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

// groupSizes returns the size in bits of the group by the length of its largest magnitude.
func (p *plan) groupSizes() *[32]uint16 {
	t := new([32]uint16)
	for length := range p.max + 1 {
		t[length] = uint16(groupBits(p.N, max(length, 1)-1, p.max))
	}
	return t
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

// numbers returns the components of the field in both frames, nil without base.
func (p *plan) numbers(cur, base *schema.Frame) (v, b []int32) {
	v = cur.Ints[p.At : p.At+p.N]
	if base != nil {
		b = base.Ints[p.At : p.At+p.N]
	}
	return v, b
}

// difference sets diff to v-base, or to v if base is nil, and returns the largest magnitude.
func (p *plan) difference(diff []int64, v, base []int32) (m uint64) {
	for k, x := range v {
		d := int64(x)
		if base != nil {
			d -= int64(base[k])
			if p.Class == schema.ClassAngle {
				d = int64(int32(d)<<(32-p.Bits)) >> (32 - p.Bits) // in the range of half a turn
			}
		}
		diff[k] = d
		m = max(m, magnitude(d))
	}
	return m
}

// componentBytes returns the size of component k of an integer field, in bytes.
func (p *plan) componentBytes(k int) int {
	if p.Width <= 32 {
		return p.ValueBytes()
	}
	if k%2 == 0 {
		return 4
	}
	return p.ValueBytes() - 4
}
