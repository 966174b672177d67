package rpcdelta

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/mpack"
)

// newPacked moves any other value through msgpack into a byte field. Equal
// values give equal bytes, whatever the order of their maps. A type that msgpack
// does not take fails here, not at the first call.
func newPacked(f *Field, t reflect.Type, i int) (member, error) {
	f.Kind = KindBytes
	if err := checkPackable(t, nil); err != nil {
		return member{}, fmt.Errorf("type %v: %w", t, err)
	}
	if _, err := mpack.AppendMarshal(nil, reflect.New(t).Interface()); err != nil {
		return member{}, fmt.Errorf("type %v: %w", t, err)
	}
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			b, err := mpack.AppendMarshal(nil, reflect.NewAt(t, p).Interface())
			if err != nil {
				return fmt.Errorf("rpcdelta: %s: field %q: %w", s.rpc, s.fields[i].Name, err)
			}
			return s.SetBytes(fr, i, b)
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			b := s.BytesOf(fr, i)
			v := reflect.NewAt(t, p)
			v.Elem().SetZero()
			if err := mpack.Unmarshal(b, v.Interface()); err != nil {
				return fmt.Errorf("rpcdelta: %s: field %q: %w", s.rpc, s.fields[i].Name, err)
			}
			return nil
		},
	}, nil
}
