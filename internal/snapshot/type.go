package snapshot

import (
	"errors"
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// Type converts between values of the Go struct T and rows of the schema of its objects. Only
// [Compile] uses reflection. Not safe for concurrent use; [Type.Clone] returns a Type for another
// goroutine.
type Type[T any] struct {
	rpc    *schema.Type[T]
	source *schema.Schema // schema from which the rows were derived
	schema *Schema
	ints   int // number of components before the byte strings in a row
	frame  *schema.Frame
	row    []int32

	conversion *versions.Conversion // from frames of source to frames of rpc; nil if both are the same
	converted  *schema.Frame
}

// Compile derives the schema of objects from the fields and tags of the struct T, as
// [schema.Compile] does. The row of an object has the Ints of its frame, followed by its byte
// strings, each as a [Field] of class [schema.ClassBytes]. name is the name of the objects in
// errors. An error names the invalid field, or the field that exceeds the limit of 32 fields or 128
// components.
func Compile[T any](name string) (*Type[T], error) {
	rpc, err := schema.Compile[T](name, 0)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s, err := SchemaOf(rpc.Schema())
	if err != nil {
		return nil, err
	}
	return (&Type[T]{rpc: rpc, source: rpc.Schema(), schema: s}).Clone(), nil
}

// From returns a Type that restores a T from the rows of another version of it, whose schema is
// source. Fields are matched by name: a field that only source has is skipped. A field that only T
// has is 0, or the number of its range that is nearest to 0. Numbers may have another resolution
// and range. An error names the field whose values cannot be converted. The Type cannot quantize.
func (t *Type[T]) From(source *schema.Schema) (*Type[T], error) {
	s, err := SchemaOf(source)
	if err != nil {
		return nil, err
	}
	c, err := versions.New(source, t.rpc.Schema())
	if err != nil {
		return nil, err
	}
	return (&Type[T]{rpc: t.rpc, source: source, schema: s, conversion: c}).Clone(), nil
}

// SchemaOf returns the schema of rows for objects with the fields of rpc. An error names the
// exceeded limit.
func SchemaOf(rpc *schema.Schema) (*Schema, error) {
	var fields, strings []Field
	layouts := rpc.Layouts()
	for i := range layouts {
		if l := &layouts[i]; l.Class == schema.ClassBytes {
			strings = append(strings, Field{l.Field.Name, schema.ClassBytes, byteComponents(l.MaxBytes), int32(l.MinBytes), int32(l.MaxBytes)})
		} else {
			fields = appendFields(fields, l)
		}
	}
	s, err := NewSchema(append(fields, strings...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rpc.RPC(), err)
	}
	return s, nil
}

// byteComponents returns the number of components of a byte string of at most n bytes.
func byteComponents(n int) int { return 1 + (n+3)/4 }

// appendFields appends the fields of the components of l. A field of numbers or angles has at most
// 3 components, a field of class ClassInteger has 1. Integers that need all 32 bits are in two's
// complement, as in a frame.
func appendFields(fields []Field, l *schema.Layout) []Field {
	f := Field{Name: l.Field.Name, Class: l.Class, N: l.N, Lo: l.Lo, Hi: l.Hi}
	limit := 3
	switch l.Class {
	case schema.ClassQuat:
		limit = 4
	case schema.ClassInteger:
		limit = 1
	default:
	}
	for at := 0; at < l.N; at += f.N {
		f.N = min(l.N-at, limit)
		if f.Class == schema.ClassInteger {
			lo, hi := l.ComponentRange(at)
			if hi > math.MaxInt32 {
				lo, hi = math.MinInt32, math.MaxInt32
			}
			f.Lo, f.Hi = int32(lo), int32(hi)
		}
		fields = append(fields, f)
	}
	return fields
}

var errFrom = errors.New("snapshot: a Type of another version cannot quantize")

// Clone returns a Type that shares the compiled schema.
func (t *Type[T]) Clone() *Type[T] {
	c := *t
	c.frame, c.row = t.source.NewFrame(), make([]int32, t.schema.ints)
	c.ints = len(c.frame.Ints)
	if t.conversion != nil {
		c.converted = t.rpc.Schema().NewFrame()
	}
	return &c
}

// Schema returns the schema of the rows.
func (t *Type[T]) Schema() *Schema { return t.schema }

// Source returns the schema from which the schema of the rows was derived. It is the schema of T,
// or the argument of From. If the Sources of two ends have equal fingerprints, both interpret rows
// in the same way.
func (t *Type[T]) Source() *schema.Schema { return t.source }

// Quantize quantizes v into row, which has [Schema.Components] integers. If a field cannot hold its
// value, the error is a [*schema.RangeError], and the contents of row are then undefined. It
// allocates only for fields that are encoded as msgpack.
func (t *Type[T]) Quantize(row []int32, v *T) error {
	if t.conversion != nil {
		return errFrom
	}
	t.frame.Ints = row[:t.ints]
	if err := t.rpc.Quantize(t.frame, v); err != nil {
		return err
	}
	for n, i := range t.schema.strings {
		at := t.schema.at[i]
		putBytes(row[at:at+t.schema.fields[i].N], t.frame.Bytes[n])
	}
	return nil
}

// Round rounds v to the values that Restore would restore after Quantize. Rounding again changes
// nothing. Both ends of a world that is sent as state (package statesync) round every object before
// each step of the simulation: the sender then simulates from exactly the state that the receiver
// decodes. A value that its field cannot hold is a [*schema.RangeError], with v unchanged. Only
// byte strings and fields that are encoded as msgpack allocate.
func (t *Type[T]) Round(v *T) error {
	if err := t.Quantize(t.row, v); err != nil {
		return err
	}
	for i, f := range t.schema.fields {
		if at := t.schema.at[i]; f.Class == schema.ClassQuat {
			quat.FixLargest(t.row[at+1:at+4], int64(f.Hi))
		}
	}
	return t.Restore(v, t.row)
}

// Restore writes the values of row to v. Each number differs from the number before quantization by
// at most half a step. Byte slices are overwritten in place; changed strings and fields that are
// encoded as msgpack are allocated.
func (t *Type[T]) Restore(v *T, row []int32) error {
	t.schema.Unpack(t.frame, row)
	if t.conversion == nil {
		return t.rpc.Restore(v, t.frame)
	}
	t.conversion.Convert(t.converted, t.frame)
	return t.rpc.Restore(v, t.converted)
}

// Add quantizes v and appends it to the set, see [Set.Add]. A value that its field cannot hold is
// an error that names the object and wraps a [*schema.RangeError]. An error leaves the set
// unchanged.
func (t *Type[T]) Add(set *Set, o Object, v *T) error {
	if err := t.Quantize(t.row, v); err != nil {
		return fmt.Errorf("snapshot: object %d: %w", o.ID, err)
	}
	return set.Add(o, t.row)
}

// Get restores object i of the set into v.
func (t *Type[T]) Get(v *T, set *Set, i int) error { return t.Restore(v, set.Row(i)) }
