package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// maxValues is the maximum number of values of a member.
const maxValues = 64

// newMember returns the member for Go type t and completes f, which holds the options of the tag. i
// is the index of the field in the schema.
func newMember(f *Field, t reflect.Type, i int) (member, error) {
	if isOwnType(t) {
		f.defaultKind(ownKinds[t])
		return newFloats[float64](f, i, int(t.Size()/8))
	}
	if f.Kind == "" && f.Max != nil && f.Resolution == 0 && !isPlain(t) {
		return newPacked(f, t, i)
	}
	switch t.Kind() {
	case reflect.Bool:
		f.defaultKind(KindBool)
		return newBools(f, i, 1), f.checkKind(t, KindBool, KindUint, KindBits)
	case reflect.Float32:
		f.defaultKind(KindScalar)
		return newFloats[float32](f, i, 1)
	case reflect.Float64:
		f.defaultKind(KindScalar)
		return newFloats[float64](f, i, 1)
	case reflect.String:
		f.defaultKind(KindBytes)
		return newString(i), f.checkKind(t, KindBytes)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.defaultKind(KindBytes)
			return newBytes(i), f.checkKind(t, KindBytes)
		}
	case reflect.Array:
		return newArray(f, t, i)
	default:
		return newIntegers(f, t, t, i, 1)
	}
	return member{}, unsupported(t)
}

func unsupported(t reflect.Type) error {
	return fmt.Errorf("type %v is not supported without max=N, the maximum size in bytes of its msgpack encoding", t)
}

// newIntegers returns a member for type t, which consists of n integers of type elem.
func newIntegers(f *Field, t, elem reflect.Type, i, n int) (member, error) {
	if n < 1 || n > maxValues {
		return member{}, fmt.Errorf("array of %d, want 1 to %d", n, maxValues)
	}
	m, err := newInteger(f, elem, i, n)
	if errors.Is(err, errNotInteger) {
		return m, unsupported(t)
	}
	return m, errors.Join(err, f.checkKind(t, KindScalar, KindUint, KindInt, KindBool, KindBits))
}

func (f *Field) defaultKind(k Kind) {
	if f.Kind == "" {
		f.Kind = k
	}
}

// checkKind returns an error if the kind of f is not one of kinds, which type t supports.
func (f *Field) checkKind(t reflect.Type, kinds ...Kind) error {
	if _, known := f.Kind.Class(); known && !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("type %v cannot be a %s; it can be %v", t, f.Kind, kinds)
	}
	return nil
}

// isPlain reports whether values of type t are sent without msgpack even if the option max is set.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	case reflect.Array:
		k := t.Elem().Kind()
		return k == reflect.Float32 || k == reflect.Float64 || k == reflect.Uint8
	default:
		return false
	}
}

var ownKinds = map[reflect.Type]Kind{
	reflect.TypeFor[Vec2]():    KindVec2,
	reflect.TypeFor[Vec3]():    KindVec3,
	reflect.TypeFor[UnitVec](): KindUnitVec,
	reflect.TypeFor[Quat]():    KindQuat,
	reflect.TypeFor[Rotator](): KindAngle,
	reflect.TypeFor[Angle]():   KindAngle,
}

func isOwnType(t reflect.Type) bool { _, ok := ownKinds[t]; return ok }

// newFloats returns a member for n adjacent floats.
func newFloats[F float32 | float64](f *Field, i, n int) (member, error) {
	if n < 1 || n > maxValues {
		return member{}, fmt.Errorf("array of %d, want 1 to %d", n, maxValues)
	}
	if want := f.Kind.values(); want != 0 && want != n {
		return member{}, fmt.Errorf("%d numbers, but a %s has %d", n, f.Kind, want)
	}
	if c, _ := f.Kind.Class(); c == ClassInteger || c == ClassBytes {
		return member{}, fmt.Errorf("a float cannot be a %s", f.Kind)
	}
	f.Count = n
	load := func(s *Schema, fr *Frame, p unsafe.Pointer) error {
		var buf [maxValues]float64
		for k, v := range unsafe.Slice((*F)(p), n) {
			buf[k] = float64(v)
		}
		return s.QuantizeField(fr, i, buf[:n])
	}
	store := func(s *Schema, p unsafe.Pointer, fr *Frame) error {
		var buf [maxValues]float64
		dst := unsafe.Slice((*F)(p), n)
		for k, v := range s.RestoreField(buf[:0], fr, i) {
			dst[k] = F(v)
		}
		return nil
	}
	return member{load: load, store: store}, nil
}

func newArray(f *Field, t reflect.Type, i int) (member, error) {
	switch t.Elem().Kind() {
	case reflect.Float32:
		f.defaultKind(KindScalar)
		return newFloats[float32](f, i, t.Len())
	case reflect.Float64:
		f.defaultKind(KindScalar)
		return newFloats[float64](f, i, t.Len())
	case reflect.Uint8:
		f.defaultKind(KindFixed)
		f.Size = t.Len()
		return newByteArray(i, t.Len()), f.checkKind(t, KindFixed)
	case reflect.Bool:
		if n := t.Len(); n < 1 || n > maxValues {
			return member{}, fmt.Errorf("array of %d, want 1 to %d", n, maxValues)
		}
		f.defaultKind(KindBool)
		return newBools(f, i, t.Len()), f.checkKind(t, KindBool, KindUint, KindBits)
	default:
		return newIntegers(f, t, t.Elem(), i, t.Len())
	}
}

// newBools returns a member for n adjacent booleans.
func newBools(f *Field, i, n int) member {
	f.Count = n
	return member{
		load: func(s *Schema, f *Frame, p unsafe.Pointer) error {
			for k, v := range unsafe.Slice((*bool)(p), n) {
				if err := s.SetUint(f, i, k, boolBit(v)); err != nil {
					return err
				}
			}
			return nil
		},
		store: func(s *Schema, p unsafe.Pointer, f *Frame) error {
			for k := range n {
				unsafe.Slice((*bool)(p), n)[k] = s.Uint(f, i, k) != 0
			}
			return nil
		},
	}
}

func boolBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func newBytes(i int) member {
	return member{
		load: func(s *Schema, f *Frame, p unsafe.Pointer) error { return s.SetBytes(f, i, *(*[]byte)(p)) },
		store: func(s *Schema, p unsafe.Pointer, f *Frame) error {
			b := (*[]byte)(p)
			*b = append((*b)[:0], s.BytesOf(f, i)...)
			return nil
		},
	}
}

func newByteArray(i, n int) member {
	return member{
		load: func(s *Schema, f *Frame, p unsafe.Pointer) error {
			return s.SetBytes(f, i, unsafe.Slice((*byte)(p), n))
		},
		store: func(s *Schema, p unsafe.Pointer, f *Frame) error {
			copy(unsafe.Slice((*byte)(p), n), s.BytesOf(f, i))
			return nil
		},
	}
}

func newString(i int) member {
	return member{
		load: func(s *Schema, f *Frame, p unsafe.Pointer) error {
			v := *(*string)(p)
			return s.SetBytes(f, i, unsafe.Slice(unsafe.StringData(v), len(v)))
		},
		store: func(s *Schema, p unsafe.Pointer, f *Frame) error {
			if v := (*string)(p); *v != string(s.BytesOf(f, i)) {
				*v = string(s.BytesOf(f, i))
			}
			return nil
		},
	}
}
