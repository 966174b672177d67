package packed

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/rle"
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
