package rpcdelta

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// Type ties a Go struct to its schema: it moves values of T into frames and
// back. Reflection happens once, in [Compile]. Immutable and safe for
// concurrent use.
type Type[T any] struct {
	schema  *Schema
	members []member
}

// member moves one field between a T and a frame. Offsets come from the
// compiler's own layout of T, so p+offset is always within the T at p.
type member struct {
	offset uintptr
	load   func(s *Schema, f *Frame, p unsafe.Pointer) error // value to frame
	store  func(s *Schema, p unsafe.Pointer, f *Frame) error // frame to value
}

// Compile derives the schema of an RPC from the fields of T, a struct, and
// their tags. rateHz is how often a second the RPC is called; 0 means
// [DefaultRate]. Supported are the types of this package, booleans, integers,
// floats, arrays of floats, byte arrays, byte slices, strings, embedded structs
// of these, and any other type with max=N, through msgpack. A field tagged
// `rpcdelta:"-"` stays at home. An error names the field.
func Compile[T any](rpc string, rateHz float64) (*Type[T], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("rpcdelta: %s: %v is not a struct", rpc, t)
	}
	var c compiler
	if err := c.addStruct(t, 0); err != nil {
		return nil, fmt.Errorf("rpcdelta: %s: %w", rpc, err)
	}
	if len(c.fields) == 0 {
		return nil, fmt.Errorf("rpcdelta: %s: %v has no fields to send", rpc, t)
	}
	s, err := NewSchema(rpc, rateHz, c.fields)
	if err != nil {
		return nil, err
	}
	return &Type[T]{schema: s, members: c.members}, nil
}

// Schema is the schema that T's fields describe.
func (t *Type[T]) Schema() *Schema { return t.schema }

// Quantize writes v into f, a frame of the schema. A value that its field
// cannot hold is a [*RangeError] that names it, and f is then undefined. It
// allocates nothing, but for fields that go through msgpack.
func (t *Type[T]) Quantize(f *Frame, v *T) error {
	p := unsafe.Pointer(v)
	for i := range t.members {
		m := &t.members[i]
		if err := m.load(t.schema, f, unsafe.Add(p, m.offset)); err != nil {
			return err
		}
	}
	return nil
}

// Restore writes f's values into v. Byte slices keep their capacity and are
// overwritten in place, so a v that is used again allocates nothing; strings
// and fields that go through msgpack are made anew.
func (t *Type[T]) Restore(v *T, f *Frame) error {
	p := unsafe.Pointer(v)
	for i := range t.members {
		m := &t.members[i]
		if err := m.store(t.schema, unsafe.Add(p, m.offset), f); err != nil {
			return err
		}
	}
	return nil
}

// compiler collects fields and their members in parallel.
type compiler struct {
	fields  []Field
	members []member
}

func (c *compiler) addStruct(t reflect.Type, base uintptr) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("rpcdelta")
		if tag == "-" || sf.Name == "_" {
			continue
		}
		if sf.Anonymous && tag == "" && sf.Type.Kind() == reflect.Struct && !isOwnType(sf.Type) {
			if err := c.addStruct(sf.Type, base+sf.Offset); err != nil {
				return err
			}
			continue
		}
		if err := c.addField(sf, tag, base); err != nil {
			return fmt.Errorf("field %q: %w", sf.Name, err)
		}
	}
	return nil
}

func (c *compiler) addField(sf reflect.StructField, tag string, base uintptr) error {
	if !sf.IsExported() {
		return errors.New(`not exported; export it or tag it rpcdelta:"-"`)
	}
	f := Field{Name: sf.Name}
	if err := f.applyTag(tag); err != nil {
		return err
	}
	m, err := newMember(&f, sf.Type, len(c.fields))
	if err != nil {
		return err
	}
	m.offset = base + sf.Offset
	c.fields = append(c.fields, f)
	c.members = append(c.members, m)
	return nil
}
