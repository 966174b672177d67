package packed

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/rle"
)

// Measure reports the cost of the parts of cur to m, coded as by Append, and returns the total in
// bits.
func (c *Codec) Measure(cur, base *schema.Frame, m cost.Meter) (bits float64) {
	c.w.Reset(c.code[:0])
	for i := range c.s.plans {
		c.measureNumbers(i, cur, base, m)
	}
	numbers := c.w.Bits()
	c.binary = c.s.appendBinary(c.binary[:0], cur, base)
	c.code = rle.AppendEncode(c.w.Bytes()[:0], c.binary)
	c.measureBinary(cur, base, m)
	return float64(numbers + 8*len(c.code))
}

// measureNumbers writes the numbers of field i and measures them.
func (c *Codec) measureNumbers(i int, cur, base *schema.Frame, m cost.Meter) {
	p := &c.s.plans[i]
	v := cur.Ints[p.At : p.At+p.N]
	switch p.Class {
	case schema.ClassInteger, schema.ClassBytes:
		return
	case schema.ClassQuat:
		v = v[1:]
	default:
	}
	flags := -c.w.Bits()
	c.width = 0
	c.writeNumbers(p, cur, base)
	flags += c.w.Bits()
	for _, x := range v {
		flags -= c.componentBits(p, x)
	}
	m.Flags(i, float64(flags))
	for k, x := range v {
		by, residual := cost.ByNone, int64(cost.NoResidual)
		if c.width > 0 && base != nil {
			by, residual = cost.ByHold, c.diff[k]
		}
		m.Component(i, k, float64(c.componentBits(p, x)), by, residual)
	}
}

// componentBits returns the size in bits of component x of the field that was written last.
func (c *Codec) componentBits(p *plan, x int32) int {
	switch {
	case c.width > 0:
		return int(c.width)
	case p.Class == schema.ClassAngle && x == 0:
		return 0
	}
	return int(p.Bits)
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
		default:
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
