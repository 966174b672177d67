package peer

import (
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// shape groups kinds of fields by their coding.
type shape uint8

const (
	group  shape = iota // numbers with a common range around 0
	angles              // numbers modulo 2^bits
	quat                // an index of 2 bits, and three numbers
	flags               // integers, whose bits may be flags
	blob                // byte string
)

// field is a field of a schema, as peers code it.
type field struct {
	shape
	components []component
	limit      uint32 // group: limit of its header
	blob       int    // byte string: its index
	size       int    // byte string: its length, or 0 if it varies
	most       int    // byte string: its maximum length
}

// component is one integer of a frame.
type component struct {
	at     int  // its index
	bits   uint // it has 2^bits values
	signed bool // half of them are negative
	xor    bool // its difference is an XOR
	index  int  // index of the component that must equal the baseline's for a difference; -1: none
}

// layout is a schema, as peers code it.
type layout struct {
	fields     []field
	components []component // of all fields
	blobs      int
	zero       *schema.Frame
}

func newLayout(s *schema.Schema) *layout {
	l := &layout{zero: s.NewFrame()}
	for i := range s.Fields() {
		l.add(&s.Fields()[i])
	}
	return l
}

func (l *layout) add(f *schema.Field) {
	var p field
	next := component{bits: uint(f.Bits), signed: true, index: -1}
	n := f.Values()
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		next.bits, p.limit = 24, 24
		if beyond(f, f.Min) || beyond(f, f.Max) {
			next.bits, p.limit = 32, 31
		}
	case schema.KindUnitVec:
		n, p.limit = 2, 24
	case schema.KindAngle:
		p.shape, next.signed = angles, false
	case schema.KindQuat:
		p.shape = quat
	case schema.KindFixed, schema.KindBytes:
		p.shape, p.blob, p.size, p.most, n = blob, l.blobs, f.Size, f.Size, 0
		if f.Kind == schema.KindBytes {
			p.most = int(*f.Max)
		}
		l.blobs++
	default:
		l.addBinary(&p, f)
		return
	}
	first := len(l.components)
	for k := range n {
		c := next
		c.at = first + k
		if p.shape == quat && k == 0 {
			c.bits, c.signed = 2, false
		} else if p.shape == quat {
			c.index = first
		}
		l.components = append(l.components, c)
	}
	p.components = l.components[first:]
	l.fields = append(l.fields, p)
}

// addBinary adds a field of integers. Those of more than 32 bits have two components.
func (l *layout) addBinary(p *field, f *schema.Field) {
	p.shape = flags
	first, signed := len(l.components), f.Kind == schema.KindInt
	for range f.Values() {
		width := uint(f.Width)
		if width > 32 {
			l.components = append(l.components, component{at: len(l.components), bits: 32, signed: signed, xor: true, index: -1})
			width -= 32
		}
		l.components = append(l.components, component{at: len(l.components), bits: width, signed: signed, xor: true, index: -1})
	}
	p.components = l.components[first:]
	l.fields = append(l.fields, *p)
}

// beyond reports whether a limit exceeds the 24 bits that a number has by default.
func beyond(f *schema.Field, limit *float64) bool {
	return limit != nil && math.Abs(math.Floor(float64(*limit*(1/f.Resolution))+0.5)) >= 1<<23
}

// plain returns a value without its sign extension.
func (c *component) plain(v int32) uint32 { return uint32(v) & c.mask() }

func (c *component) mask() uint32 { return uint32(uint64(1)<<c.bits - 1) }

// value returns the value of its low bits.
func (c *component) value(v uint32) int32 {
	if c.signed {
		return c.extend(v)
	}
	return int32(v & c.mask())
}

func (c *component) extend(v uint32) int32 { return int32(v<<(32-c.bits)) >> (32 - c.bits) }

// difference returns the XOR with the baseline, or the smallest signed difference modulo 2^bits.
func (c *component) difference(cur, base *schema.Frame) int32 {
	from := c.from(cur, base)
	if c.xor {
		return int32(c.plain(cur.Ints[c.at] ^ from))
	}
	return c.extend(uint32(cur.Ints[c.at]) - uint32(from))
}

// restore is the inverse of difference. The preceding components must have been restored.
func (c *component) restore(cur, base *schema.Frame, difference int32) {
	from := c.from(cur, base)
	if c.xor {
		cur.Ints[c.at] = c.value(uint32(from) ^ uint32(difference))
		return
	}
	cur.Ints[c.at] = c.value(uint32(from) + uint32(difference))
}

// from returns the value in the baseline, or 0 if that has another meaning.
func (c *component) from(cur, base *schema.Frame) int32 {
	if c.index >= 0 && cur.Ints[c.index] != base.Ints[c.index] {
		return 0
	}
	return base.Ints[c.at]
}
