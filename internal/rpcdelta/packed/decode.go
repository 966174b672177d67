package packed

import (
	"encoding/binary"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/rle"
	"github.com/uplink-rpc/uplink/schema"
)

// Parse decodes all of src into cur, adding base unless base is nil. It rejects components that are
// out of range. After an error, cur is undefined.
func (c *Codec) Parse(cur, base *schema.Frame, src []byte) error {
	c.r.Reset(src)
	for i := range c.s.plans {
		if p := &c.s.plans[i]; !c.readNumbers(p, cur, base) {
			return wire.Malformed("a component of %s is out of range", p.Field.Name)
		}
	}
	c.r.Align()
	if err := c.r.Err(); err != nil {
		return wire.Malformed("numbers: %v", err)
	}
	var err error
	if c.binary, err = rle.AppendDecode(c.binary[:0], c.r.Rest(), c.s.BinaryBytes()); err != nil {
		return wire.Malformed("binary part: %v", err)
	}
	return c.s.parseBinary(cur, base, c.binary)
}

func (c *Codec) readNumbers(p *plan, cur, base *schema.Frame) bool {
	v, b := p.numbers(cur, base)
	switch p.Class {
	case schema.ClassNumber:
		return c.readGroup(p, v, b)
	case schema.ClassAngle:
		if b != nil {
			return c.readGroup(p, v, b)
		}
		for k := range v {
			v[k] = int32(c.r.ReadBits(p.Bits * uint(c.r.ReadBits(1))))
		}
	case schema.ClassQuat:
		if b != nil && c.r.ReadBits(1) != 0 {
			v[0] = b[0]
			return c.readGroup(p, v[1:], b[1:])
		}
		v[0] = int32(c.r.ReadBits(2))
		for k := 1; k < len(v); k++ {
			v[k] = int32(c.r.ReadBits(p.Bits)) << (32 - p.Bits) >> (32 - p.Bits)
			if v[k] < p.Lo {
				return false
			}
		}
	default:
	}
	return true
}

// readGroup reports false if a component is out of range.
func (c *Codec) readGroup(p *plan, v, base []int32) bool {
	header := c.r.ReadTruncated(p.max)
	for k := range v {
		d := int64(c.r.ReadBits(uint(header+2))) - 1<<(header+1)
		if base != nil {
			d += int64(base[k])
			if p.Class == schema.ClassAngle {
				d &= int64(p.Hi)
			}
		}
		if d < int64(p.Lo) || d > int64(p.Hi) {
			return false
		}
		v[k] = int32(d)
	}
	return true
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
