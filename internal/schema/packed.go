package schema

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	lib "github.com/vmihailenco/msgpack/v5"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
)

// newPacked returns a member that encodes values of type t as msgpack into a byte field. Equal
// values yield equal bytes, independent of the iteration order of maps. A type that msgpack cannot
// encode is an error here, not at the first call.
func newPacked(f *Field, t reflect.Type, i int) (member, error) {
	f.Kind = KindBytes
	if err := checkPackable(t, nil); err != nil {
		return member{}, fmt.Errorf("type %v: %w", t, err)
	}
	if _, err := msgpack.AppendMarshal(nil, reflect.New(t).Interface()); err != nil {
		return member{}, fmt.Errorf("type %v: %w", t, err)
	}
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			b, err := msgpack.AppendMarshal(nil, reflect.NewAt(t, p).Interface())
			if err != nil {
				return fmt.Errorf("schema: %s: field %q: %w", s.rpc, s.fields[i].Name, err)
			}
			return s.SetBytes(fr, i, b)
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			b := s.BytesOf(fr, i)
			v := reflect.NewAt(t, p)
			v.Elem().SetZero()
			if err := msgpack.Unmarshal(b, v.Interface()); err != nil {
				return fmt.Errorf("schema: %s: field %q: %w", s.rpc, s.fields[i].Name, err)
			}
			return nil
		},
	}, nil
}

// marshalers are the interfaces of types that encode themselves. Their contents are opaque.
var marshalers = []reflect.Type{
	reflect.TypeFor[lib.CustomEncoder](),
	reflect.TypeFor[lib.Marshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](),
}

func marshalsItself(t reflect.Type) bool {
	return slices.ContainsFunc(marshalers, func(m reflect.Type) bool {
		return t.Implements(m) || reflect.PointerTo(t).Implements(m)
	})
}

// checkPackable returns an error that names a type within t that msgpack cannot encode. Encoding a
// zero value would not find it, because maps and slices are empty. seen holds the types that
// enclose t.
func checkPackable(t reflect.Type, seen []reflect.Type) error {
	if marshalsItself(t) || slices.Contains(seen, t) {
		return nil
	}
	seen = append(seen, t)
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return fmt.Errorf("%v has no form in msgpack", t)
	case reflect.Map:
		if err := checkPackable(t.Key(), seen); err != nil {
			return err
		}
		return checkPackable(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkPackable(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() && !f.Anonymous || f.Tag.Get("msgpack") == "-" {
				continue
			}
			if err := checkPackable(f.Type, seen); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	default:
		return nil
	}
}
