package peer

import (
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// shape groups kinds of fields by what is done with them.
type shape uint8

const (
	group  shape = iota // numbers of one range around 0
	angles              // numbers modulo 2^bits
	quat                // an index of 2 bits, and three numbers
	flags               // integers whose bits are flags as likely as numbers
	blob                // byte string
)

// field is where a field's components lie, and what they may be.
type field struct {
	shape
	components []component
	wide       bool // group: of more than 24 bits
	bytes      int  // flags: the size of one value
	blob       int  // byte string: its number
	size       int  // byte string: its length, or 0 if it varies
	most       int  // byte string: its greatest length
}

// component is one integer of a frame.
type component struct {
	at     int  // its number
	bits   uint // it has 2^bits values
	signed bool // half of them negative
	xor    bool // its difference is taken bit by bit
	index  int  // number of the component that must be equal for a difference to make sense; -1: none
}

// layout is a schema as peers read it.
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
		next.bits = 24
		if p.wide = beyond(f, f.Min) || beyond(f, f.Max); p.wide {
			next.bits = 32
		}
	case schema.KindUnitVec:
		n = 2
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

// addBinary adds a field of integers, of which those of more than 32 bits have two components.
func (l *layout) addBinary(p *field, f *schema.Field) {
	p.shape, p.bytes = flags, (f.Width+7)/8
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

// beyond says that a limit is beyond the 24 bits that a number has by default.
func beyond(f *schema.Field, limit *float64) bool {
	return limit != nil && math.Abs(math.Floor(float64(*limit*(1/f.Resolution))+0.5)) >= 1<<23
}

// plain is a value without its sign extension.
func (c *component) plain(v int32) uint32 { return uint32(v) & c.mask() }

func (c *component) mask() uint32 { return uint32(uint64(1)<<c.bits - 1) }

// value is the value of its low bits.
func (c *component) value(v uint32) int32 {
	if c.signed {
		return c.extend(v)
	}
	return int32(v & c.mask())
}

func (c *component) extend(v uint32) int32 { return int32(v<<(32-c.bits)) >> (32 - c.bits) }

// difference is that of a frame's component from the baseline's, the shorter way around: a pattern
// of bits, not negative but for 32 bits, where it is taken by XOR, else a number.
func (c *component) difference(cur, base *schema.Frame) int32 {
	from := c.from(cur, base)
	if c.xor {
		return int32(c.plain(cur.Ints[c.at] ^ from))
	}
	return c.extend(uint32(cur.Ints[c.at]) - uint32(from))
}

// restore is the opposite of difference. The components before this one are restored already.
func (c *component) restore(cur, base *schema.Frame, difference int32) {
	from := c.from(cur, base)
	if c.xor {
		cur.Ints[c.at] = c.value(uint32(from) ^ uint32(difference))
		return
	}
	cur.Ints[c.at] = c.value(uint32(from) + uint32(difference))
}

// from is what the difference is taken from: 0 if the baseline's value means something else.
func (c *component) from(cur, base *schema.Frame) int32 {
	if c.index >= 0 && cur.Ints[c.index] != base.Ints[c.index] {
		return 0
	}
	return base.Ints[c.at]
}
