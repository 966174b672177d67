package peer

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// shape groups kinds of fields that are coded alike.
type shape uint8

const (
	group  shape = iota // numbers with a common range around 0
	angles              // numbers modulo 2^bits
	quat                // an index of 2 bits, and three numbers
	flags               // integers, whose bits may be flags
	blob                // byte string
)

// field is a field of a schema with the data that peers need.
type field struct {
	shape
	components []component
	limit      uint32 // group: maximum of its header
	blob       int    // byte string: index
	size       int    // byte string: length, or 0 if it varies
	most       int    // byte string: maximum length
}

// component is one integer of a frame.
type component struct {
	at     int  // index in the frame
	bits   uint // number of values is 2^bits
	signed bool // half of the values are negative
	xor    bool // its difference is an XOR
	index  int  // component that must equal the baseline's for a difference; -1: none
}

// layout is a schema with the data that peers need.
type layout struct {
	fields     []field
	components []component // components of all fields
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

// beyond reports whether a limit exceeds 24 bits, the default of a number.
func beyond(f *schema.Field, limit *float64) bool {
	return limit != nil && math.Abs(math.Floor(float64(*limit*(1/f.Resolution))+0.5)) >= 1<<23
}

// plain returns the low bits of a value, without sign extension.
func (c *component) plain(v int32) uint32 { return uint32(v) & c.mask() }

func (c *component) mask() uint32 { return uint32(uint64(1)<<c.bits - 1) }

// value restores a value from its low bits.
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

// restore is the inverse of difference. It requires that the preceding components are restored.
func (c *component) restore(cur, base *schema.Frame, difference int32) {
	from := c.from(cur, base)
	if c.xor {
		cur.Ints[c.at] = c.value(uint32(from) ^ uint32(difference))
		return
	}
	cur.Ints[c.at] = c.value(uint32(from) + uint32(difference))
}

// from returns the value in the baseline, or 0 if the baseline's value has another meaning.
func (c *component) from(cur, base *schema.Frame) int32 {
	if c.index >= 0 && cur.Ints[c.index] != base.Ints[c.index] {
		return 0
	}
	return base.Ints[c.at]
}

// Form is the layout of differences in bytes.
type Form string

// The forms of differences. Byte strings follow the numbers: a length, and the bytes XORed with
// those of the baseline.
const (
	// Varint has variable-length integers with the sign in the lowest bit.
	Varint Form = "varint"
	// Bytes contains all bytes of each component, lowest first.
	Bytes Form = "bytes"
	// Planes contains the lowest bytes of all components, then their next bytes.
	Planes Form = "planes"
)

// chained is the suffix of the name of a form in which older frames of a payload are coded against
// the frame after them, instead of the baseline.
const chained Form = " chained"

// Forms returns all forms of differences.
func Forms() []Form { return []Form{Varint, Bytes, Planes} }

// record codes the differences of frames in a form.
type record struct {
	*layout
	form    Form // name of the form without the suffix chained
	chained bool
}

func newRecord(s *schema.Schema, form Form) record {
	plain, isChained := strings.CutSuffix(string(form), string(chained))
	return record{newLayout(s), Form(plain), isChained}
}

// appendRows appends the differences of the frames of a payload, newest first.
func (r *record) appendRows(dst []byte, base *schema.Frame, rows []schema.Frame) []byte {
	for i := len(rows) - 1; i >= 0; i-- {
		dst = r.append(dst, r.before(base, rows, i), &rows[i])
	}
	return dst
}

// before returns the frame that row i is coded against.
func (r *record) before(base *schema.Frame, rows []schema.Frame, i int) *schema.Frame {
	if r.chained && i < len(rows)-1 {
		return &rows[i+1]
	}
	return base
}

// parseRows parses the result of appendRows. It reports whether the input is well-formed.
func (r *record) parseRows(rows []schema.Frame, base *schema.Frame, src []byte) bool {
	ok := true
	for i := len(rows) - 1; i >= 0 && ok; i-- {
		src, ok = r.parse(&rows[i], r.before(base, rows, i), src)
	}
	return ok && len(src) == 0
}

// append appends the differences of cur from base.
func (r *record) append(dst []byte, base, cur *schema.Frame) []byte {
	base = cmp.Or(base, r.zero)
	switch r.form {
	case Bytes:
		for i := range r.components {
			c := &r.components[i]
			d := c.difference(cur, base)
			for k := uint(0); k < c.bits; k += 8 {
				dst = append(dst, byte(d>>k))
			}
		}
	case Planes:
		for k := uint(0); k < 32; k += 8 {
			for i := range r.components {
				if c := &r.components[i]; k < c.bits {
					dst = append(dst, byte(c.difference(cur, base)>>k))
				}
			}
		}
	default:
		for i := range r.components {
			c := &r.components[i]
			dst = binary.AppendUvarint(dst, c.fold(c.difference(cur, base)))
		}
	}
	return r.appendBlobs(dst, base, cur)
}

func (r *record) appendBlobs(dst []byte, base, cur *schema.Frame) []byte {
	for i, b := range cur.Bytes {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		for k, c := range b {
			if k < len(base.Bytes[i]) {
				c ^= base.Bytes[i][k]
			}
			dst = append(dst, c)
		}
	}
	return dst
}

// parse parses differences into cur and returns the bytes that follow them. It reports whether the
// input is well-formed.
func (r *record) parse(cur, base *schema.Frame, src []byte) (rest []byte, ok bool) {
	base = cmp.Or(base, r.zero)
	switch r.form {
	case Bytes:
		for i := range r.components {
			c, d := &r.components[i], uint32(0)
			for k := uint(0); k < c.bits; k += 8 {
				if len(src) == 0 {
					return src, false
				}
				d |= uint32(src[0]) << k
				src = src[1:]
			}
			c.restore(cur, base, int32(d))
		}
	case Planes:
		if src, ok = r.parsePlanes(cur, base, src); !ok {
			return src, false
		}
	default:
		for i := range r.components {
			c := &r.components[i]
			v, n := binary.Uvarint(src)
			if n <= 0 {
				return src, false
			}
			src = src[n:]
			c.restore(cur, base, c.unfold(v))
		}
	}
	return r.parseBlobs(cur, base, src)
}

// parsePlanes collects the bytes of the differences in cur, then restores the components.
func (r *record) parsePlanes(cur, base *schema.Frame, src []byte) (rest []byte, ok bool) {
	clear(cur.Ints)
	for k := uint(0); k < 32; k += 8 {
		for i := range r.components {
			if k >= r.components[i].bits {
				continue
			}
			if len(src) == 0 {
				return src, false
			}
			cur.Ints[i] |= int32(src[0]) << k
			src = src[1:]
		}
	}
	for i := range r.components {
		r.components[i].restore(cur, base, cur.Ints[i])
	}
	return src, true
}

func (r *record) parseBlobs(cur, base *schema.Frame, src []byte) (rest []byte, ok bool) {
	for i := range r.fields {
		f := &r.fields[i]
		if f.shape != blob {
			continue
		}
		size, n := binary.Uvarint(src)
		if n <= 0 || size > uint64(f.most) || size > uint64(len(src)-n) {
			return src, false
		}
		b := append(cur.Bytes[f.blob][:0], src[n:n+int(size)]...)
		for k := range min(len(b), len(base.Bytes[f.blob])) {
			b[k] ^= base.Bytes[f.blob][k]
		}
		cur.Bytes[f.blob], src = b, src[n+int(size):]
	}
	return src, true
}

// fold maps a difference to an unsigned number that is small if the difference is.
func (c *component) fold(d int32) uint64 {
	if c.xor {
		return uint64(uint32(d))
	}
	return protowire.EncodeZigZag(int64(d))
}

func (c *component) unfold(v uint64) int32 {
	if c.xor {
		return int32(uint32(v))
	}
	return int32(protowire.DecodeZigZag(v))
}
