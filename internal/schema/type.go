package schema

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// Type converts between values of the Go struct T and frames of its schema. Only [Compile] uses
// reflection. A Type is immutable and safe for concurrent use.
type Type[T any] struct {
	schema  *Schema
	members []member
}

// member converts one field of T. offset is the offset of the Go field within T.
type member struct {
	offset uintptr
	load   func(s *Schema, f *Frame, p unsafe.Pointer) error // value to frame
	store  func(s *Schema, p unsafe.Pointer, f *Frame) error // frame to value
}

// Compile derives the schema of RPC rpc from the fields and tags of the struct T. rateHz is the
// expected number of calls per second; 0 means [DefaultRate]. It supports the types of this
// package, booleans, integers and floats, arrays of these, byte arrays, byte slices, strings and
// embedded structs. Any other type needs the option max=N and is encoded as msgpack. Fields tagged
// `uplink:"-"` are not sent. The error names the field.
func Compile[T any](rpc string, rateHz float64) (*Type[T], error) {
	s, members, err := compile(reflect.TypeFor[T](), rpc, rateHz)
	if err != nil {
		return nil, err
	}
	return &Type[T]{schema: s, members: members}, nil
}

func compile(t reflect.Type, rpc string, rateHz float64) (*Schema, []member, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("schema: %s: %v is not a struct", rpc, t)
	}
	var c compiler
	if err := c.addStruct(t, 0); err != nil {
		return nil, nil, fmt.Errorf("schema: %s: %w", rpc, err)
	}
	if len(c.fields) == 0 {
		return nil, nil, fmt.Errorf("schema: %s: %v has no fields to send", rpc, t)
	}
	s, err := New(rpc, rateHz, c.fields)
	return s, c.members, err
}

// Schema returns the schema of T.
func (t *Type[T]) Schema() *Schema { return t.schema }

// Quantize quantizes v into f, a frame of the schema. If a field cannot hold its value, the error
// is a [*RangeError], and the contents of f are then undefined. It allocates only for fields that
// are encoded as msgpack.
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

// Restore writes the values of f to v. Byte slices are overwritten in place if their capacity
// suffices, so repeated calls with the same v do not allocate for them. Changed strings and fields
// that are encoded as msgpack are allocated.
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

// compiler collects the fields of a struct, and a member for each of them.
type compiler struct {
	fields  []Field
	members []member
}

func (c *compiler) addStruct(t reflect.Type, base uintptr) error {
	for sf := range t.Fields() {
		tag := sf.Tag.Get("uplink")
		if tag == "-" || sf.Name == "_" {
			continue
		}
		if sf.Anonymous && tag == "" && sf.Type.Kind() == reflect.Struct && ownKinds[sf.Type] == "" {
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
		return errors.New(`not exported; export it or tag it uplink:"-"`)
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
