package versions

import (
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// FieldError means that the values of a field of both schemas cannot be converted.
type FieldError struct {
	Name     string
	From, To string // descriptions of the field at both ends
	Reason   string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("field %q: %s to %s: %s", e.Name, e.From, e.To, e.Reason)
}

// Conversion converts frames of one schema to frames of another one. It is immutable and safe for
// concurrent use.
type Conversion struct {
	from, to *schema.Schema
	steps    []step
	zero     *schema.Frame // frame of to, with the values of fields that from lacks
	own      []int         // fields of to that from lacks
}

// step converts one field.
type step struct {
	from, to int // field numbers
	same     bool
}

// New returns the conversion of frames. A field has the same kind and number of values in both
// schemas, or the error is a [*FieldError]. Numbers, angles,
// directions and rotations may have another resolution and range. Integers, bit sets and byte
// strings may be wider in the schema to which they are converted, not narrower.
func New(from, to *schema.Schema) (*Conversion, error) {
	c := &Conversion{from: from, to: to, zero: to.NewFrame()}
	for i := range to.Fields() {
		f := &to.Fields()[i]
		k := slices.IndexFunc(from.Fields(), func(o schema.Field) bool { return o.Name == f.Name })
		if k < 0 {
			c.own = append(c.own, i)
			continue
		}
		same, reason := compatible(&from.Layouts()[k], &to.Layouts()[i])
		if reason != "" {
			return nil, &FieldError{f.Name, from.Fields()[k].String(), f.String(), reason}
		}
		c.steps = append(c.steps, step{k, i, same})
	}
	for _, i := range c.own {
		switch p := &to.Layouts()[i]; p.Class {
		case schema.ClassNumber:
			for k := range p.N {
				c.zero.Ints[p.At+k] = min(max(0, p.Lo), p.Hi)
			}
		case schema.ClassQuat:
			c.zero.Ints[p.At] = 3 // w is 1
		default:
		}
	}
	return c, nil
}

// compatible returns the reason why the values of a field cannot be converted, or whether they are
// the same integers in both layouts.
func compatible(from, to *schema.Layout) (same bool, reason string) {
	a, b := from.Field, to.Field
	switch {
	case a.Kind != b.Kind:
		return false, "other kind"
	case a.Values() != b.Values():
		return false, "other number of values"
	case from.Width > to.Width:
		return false, fmt.Sprintf("%d bits do not fit into %d", from.Width, to.Width)
	case from.MaxBytes > to.MaxBytes || from.MinBytes < to.MinBytes:
		return false, fmt.Sprintf("%d bytes do not fit into %d", from.MaxBytes, to.MaxBytes)
	}
	return a.Resolution == b.Resolution && from.Bits == to.Bits && from.Width == to.Width && from.Lo >= to.Lo && from.Hi <= to.Hi, ""
}

// Missing returns the names of the fields that only the schema has to which frames are converted.
func (c *Conversion) Missing() (names []string) {
	for _, i := range c.own {
		names = append(names, c.to.Fields()[i].Name)
	}
	return names
}

// Skipped returns the names of the fields that only the schema has from which frames are converted.
func (c *Conversion) Skipped() (names []string) {
	for i := range c.from.Fields() {
		if !slices.ContainsFunc(c.steps, func(s step) bool { return s.from == i }) {
			names = append(names, c.from.Fields()[i].Name)
		}
	}
	return names
}

// Converted returns the fields whose values change, as their descriptions in both schemas.
func (c *Conversion) Converted() (fields [][2]string) {
	for _, s := range c.steps {
		if !s.same {
			fields = append(fields, [2]string{c.from.Fields()[s.from].String(), c.to.Fields()[s.to].String()})
		}
	}
	return fields
}

// Convert converts src to dst. A field that src lacks is 0, or the nearest number in its range; a
// rotation is the identity. Numbers out of the range of dst become the nearest one within. Convert
// does not allocate if the byte strings of dst have capacity, except for fields of more than four
// numbers whose resolution or range differs.
func (c *Conversion) Convert(dst, src *schema.Frame) {
	for _, i := range c.own {
		p := &c.to.Layouts()[i]
		if p.Class == schema.ClassBytes {
			dst.Bytes[p.Blob] = append(dst.Bytes[p.Blob][:0], c.zero.Bytes[p.Blob]...)
			continue
		}
		copy(dst.Ints[p.At:][:p.N], c.zero.Ints[p.At:])
	}
	for _, s := range c.steps {
		a, b := &c.from.Layouts()[s.from], &c.to.Layouts()[s.to]
		switch {
		case a.Class == schema.ClassBytes:
			dst.Bytes[b.Blob] = append(dst.Bytes[b.Blob][:0], src.Bytes[a.Blob]...)
		case s.same:
			copy(dst.Ints[b.At:][:b.N], src.Ints[a.At:])
		case a.Class == schema.ClassInteger:
			c.widen(dst, src, s)
		default:
			c.requantize(dst, src, s)
		}
	}
}

func (c *Conversion) widen(dst, src *schema.Frame, s step) {
	a := &c.from.Layouts()[s.from]
	for k := range a.Values() {
		var err error
		if a.Signed {
			err = c.to.SetInt(dst, s.to, k, c.from.Int(src, s.from, k))
		} else {
			err = c.to.SetUint(dst, s.to, k, c.from.Uint(src, s.from, k))
		}
		if err != nil {
			panic(err) // New refuses narrower fields
		}
	}
}

// requantize converts numbers, angles, directions or rotations of another resolution or range.
func (c *Conversion) requantize(dst, src *schema.Frame, s step) {
	var buf [4]float64
	values := c.from.RestoreField(buf[:0], src, s.from)
	if b := &c.to.Layouts()[s.to]; b.Class == schema.ClassNumber && b.Field.Kind != schema.KindUnitVec {
		lo, hi := float64(b.Lo)/b.Scale, float64(b.Hi)/b.Scale
		for k := range values {
			values[k] = math.Min(math.Max(values[k], lo), hi)
		}
	}
	if err := c.to.QuantizeField(dst, s.to, values); err != nil {
		panic(err) // values that were restored are numbers
	}
}
