package packed

import (
	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/rle"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/cost"
	"github.com/uplink-rpc/uplink/schema"
)

// Measure reports the cost of the parts of cur to m, coded as by Append, and returns the total in
// bits.
func (c *Codec) Measure(cur, base *schema.Frame, m cost.Meter) (bits float64) {
	for i := range c.s.plans {
		bits += c.measureNumbers(i, cur, base, m)
	}
	c.binary = c.s.appendBinary(c.binary[:0], cur, base)
	c.code = rle.AppendEncode(c.code[:0], c.binary)
	c.measureBinary(cur, base, m)
	return bits + float64(8*len(c.code))
}

// measureNumbers measures the output of writeNumbers for field i.
func (c *Codec) measureNumbers(i int, cur, base *schema.Frame, m cost.Meter) (bits float64) {
	p := &c.s.plans[i]
	v := cur.Ints[p.At : p.At+p.N]
	var b []int32
	if base != nil {
		b = base.Ints[p.At : p.At+p.N]
	}
	flags := 0
	switch p.Class {
	case schema.ClassNumber:
		return c.measureGroup(i, v, b, m)
	case schema.ClassAngle:
		if b != nil {
			return c.measureGroup(i, v, b, m)
		}
		flags = len(v)
	case schema.ClassQuat:
		flags = 2
		if b != nil {
			flags++
			if v[0] == b[0] {
				m.Flags(i, 1)
				return 1 + c.measureGroup(i, v[1:], b[1:], m)
			}
		}
		v = v[1:]
	case schema.ClassInteger, schema.ClassBytes:
		return 0
	}
	m.Flags(i, float64(flags))
	bits = float64(flags)
	for k, x := range v {
		n := float64(p.Bits)
		if p.Class == schema.ClassAngle && x == 0 {
			n = 0
		}
		m.Component(i, k, n, cost.ByNone, cost.NoResidual)
		bits += n
	}
	return bits
}

func (c *Codec) measureGroup(i int, v, base []int32, m cost.Meter) (bits float64) {
	p := &c.s.plans[i]
	diff := c.diff[:len(v)]
	header, _ := groupHeader(p.difference(diff, v, base), p.max)
	flags, width := float64(bitio.TruncatedBits(header, p.max)), float64(header+2)
	m.Flags(i, flags)
	for k, d := range diff {
		if base != nil {
			m.Component(i, k, width, cost.ByHold, d)
		} else {
			m.Component(i, k, width, cost.ByNone, cost.NoResidual)
		}
	}
	return flags + width*float64(len(v))
}

// measureBinary measures c.code, which encodes the integers and byte strings in c.binary.
func (c *Codec) measureBinary(cur, base *schema.Frame, m cost.Meter) {
	s := shares{code: c.code}
	for i := range c.s.plans {
		switch p := &c.s.plans[i]; p.Class {
		case schema.ClassInteger:
			for k := range p.N {
				by := cost.ByNone
				if base != nil {
					by = cost.ByHold
					if cur.Ints[p.At+k] == base.Ints[p.At+k] {
						by = cost.ByRest
					}
				}
				m.Component(i, k, s.next(p.componentBytes(k)), by, cost.NoResidual)
			}
		case schema.ClassBytes:
			n := len(cur.Bytes[p.Blob])
			if p.LengthBytes() > 0 {
				n += uvarintLen(n)
			}
			m.Contents(i, s.next(n))
		case schema.ClassNumber, schema.ClassAngle, schema.ClassQuat:
		}
	}
}

// shares divides the bits of a run-length code among the bytes that it encodes.
type shares struct {
	code []byte
	left int     // bytes left in the current token
	each float64 // bits per byte
}

// next returns the bits of the next n bytes.
func (s *shares) next(n int) (bits float64) {
	for n > 0 {
		if s.left == 0 {
			length, size := rle.Token(s.code[0])
			s.left, s.each, s.code = length, float64(8*size)/float64(length), s.code[size:]
		}
		k := min(n, s.left)
		bits += float64(k) * s.each
		s.left, n = s.left-k, n-k
	}
	return bits
}
