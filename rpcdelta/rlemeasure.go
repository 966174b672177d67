package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/bitio"
	"github.com/uplink-rpc/uplink/rle"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

func (c *rleCodec) measure(p *payload, m adaptive.Meter) (bits float64) {
	cur, base := p.frames[0], p.reference()
	for i := range c.s.plans {
		bits += c.measureNumbers(i, cur, base, m)
	}
	c.binary = c.s.appendBinary(c.binary[:0], cur, base)
	c.code = rle.AppendEncode(c.code[:0], c.binary)
	c.measureBinary(cur, base, m)
	return bits + float64(8*len(c.code))
}

// measureNumbers measures the output of writeNumbers for field i.
func (c *rleCodec) measureNumbers(i int, cur, base *Frame, m adaptive.Meter) (bits float64) {
	p := &c.s.plans[i]
	v := cur.Ints[p.at : p.at+p.n]
	var b []int32
	if base != nil {
		b = base.Ints[p.at : p.at+p.n]
	}
	flags := 0
	switch p.class {
	case classGroup:
		return c.measureGroup(i, v, b, m)
	case classAngle:
		if b != nil {
			return c.measureGroup(i, v, b, m)
		}
		flags = len(v)
	case classQuat:
		flags = 2
		if b != nil {
			flags++
			if v[0] == b[0] {
				m.Flags(i, 1)
				return 1 + c.measureGroup(i, v[1:], b[1:], m)
			}
		}
		v = v[1:]
	case classBinary, classBlob:
		return 0
	}
	m.Flags(i, float64(flags))
	bits = float64(flags)
	for k, x := range v {
		n := float64(p.bits)
		if p.class == classAngle && x == 0 {
			n = 0
		}
		m.Component(i, k, n, adaptive.ByNone, adaptive.NoResidual)
		bits += n
	}
	return bits
}

func (c *rleCodec) measureGroup(i int, v, base []int32, m adaptive.Meter) (bits float64) {
	p := &c.s.plans[i]
	diff := c.diff[:len(v)]
	header, _ := groupHeader(p.difference(diff, v, base), p.max)
	flags, width := float64(bitio.TruncatedBits(header, p.max)), float64(header+2)
	m.Flags(i, flags)
	for k, d := range diff {
		if base != nil {
			m.Component(i, k, width, adaptive.ByHold, d)
		} else {
			m.Component(i, k, width, adaptive.ByNone, adaptive.NoResidual)
		}
	}
	return flags + width*float64(len(v))
}

// measureBinary measures c.code, which encodes the integers and byte strings in c.binary.
func (c *rleCodec) measureBinary(cur, base *Frame, m adaptive.Meter) {
	s := shares{code: c.code}
	for i := range c.s.plans {
		switch p := &c.s.plans[i]; p.class {
		case classBinary:
			for k := range p.n {
				by := adaptive.ByNone
				if base != nil {
					by = adaptive.ByHold
					if cur.Ints[p.at+k] == base.Ints[p.at+k] {
						by = adaptive.ByRest
					}
				}
				m.Component(i, k, s.next(p.componentBytes(k)), by, adaptive.NoResidual)
			}
		case classBlob:
			n := len(cur.Bytes[p.blob])
			if p.lengthBytes() > 0 {
				n += uvarintLen(n)
			}
			m.Contents(i, s.next(n))
		case classGroup, classAngle, classQuat:
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
