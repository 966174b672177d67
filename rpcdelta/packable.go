package rpcdelta

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// marshalers are the interfaces of types that say themselves what they are as
// msgpack: nothing is known of what is in them.
var marshalers = []reflect.Type{
	reflect.TypeFor[msgpack.CustomEncoder](),
	reflect.TypeFor[msgpack.Marshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](),
}

func marshalsItself(t reflect.Type) bool {
	return slices.ContainsFunc(marshalers, func(m reflect.Type) bool {
		return t.Implements(m) || reflect.PointerTo(t).Implements(m)
	})
}

// checkPackable says which type within t msgpack does not take. A zero value
// does not show it: it has no elements. seen holds the types that t is in.
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
