package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// maxValues is the maximum number of values of a member.
const maxValues = 64

// newMember returns the member for Go type t and completes f, which holds the options of the tag. i
// is the index of the field in the schema.
func newMember(f *Field, t reflect.Type, i int) (member, error) {
	if k, own := ownKinds[t]; own {
		f.Kind = cmp.Or(f.Kind, k)
		return newFloats[float64](f, i, int(t.Size()/8))
	}
	if f.Kind == "" && f.Max != nil && f.Resolution == 0 && !isPlain(t) {
		return newPacked(f, t, i)
	}
	elem, n := t, 1
	switch {
	case t.Kind() == reflect.String:
		f.Kind = cmp.Or(f.Kind, KindBytes)
		return newString(i), f.checkKind(t, KindBytes)
	case isList(t, reflect.Slice, reflect.Uint8):
		f.Kind = cmp.Or(f.Kind, KindBytes)
		return newBytes(i), f.checkKind(t, KindBytes)
	case isList(t, reflect.Array, reflect.Uint8):
		f.Kind, f.Size = cmp.Or(f.Kind, KindFixed), t.Len()
		return newByteArray(i, t.Len()), f.checkKind(t, KindFixed)
	case t.Kind() == reflect.Array:
		if elem, n = t.Elem(), t.Len(); n < 1 || n > maxValues {
			return member{}, fmt.Errorf("array of %d, want 1 to %d", n, maxValues)
		}
	}
	switch elem.Kind() {
	case reflect.Bool:
		f.Kind = cmp.Or(f.Kind, KindBool)
		return newBools(f, i, n), f.checkKind(t, KindBool, KindUint, KindBits)
	case reflect.Float32:
		return newFloats[float32](f, i, n)
	case reflect.Float64:
		return newFloats[float64](f, i, n)
	default:
	}
	newIntegers, ok := integers[elem.Kind()]
	if !ok {
		const format = "type %v is not supported without max=N, the maximum size in bytes of its msgpack encoding"
		return member{}, fmt.Errorf(format, t)
	}
	m, err := newIntegers(f, elem, i, n)
	return m, errors.Join(err, f.checkKind(t, KindScalar, KindUint, KindInt, KindBool, KindBits))
}

// isPlain reports whether values of type t are sent without msgpack even if the option max is set.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64, reflect.String:
		return true
	case reflect.Slice, reflect.Array:
		return isList(t, t.Kind(), reflect.Uint8) || isList(t, reflect.Array, reflect.Float32, reflect.Float64)
	default:
		return integers[t.Kind()] != nil
	}
}

// isList reports whether t is of kind list and its elements are of one of the kinds.
func isList(t reflect.Type, list reflect.Kind, elems ...reflect.Kind) bool {
	return t.Kind() == list && slices.Contains(elems, t.Elem().Kind())
}

var ownKinds = map[reflect.Type]Kind{
	reflect.TypeFor[Vec2]():    KindVec2,
	reflect.TypeFor[Vec3]():    KindVec3,
	reflect.TypeFor[UnitVec](): KindUnitVec,
	reflect.TypeFor[Quat]():    KindQuat,
	reflect.TypeFor[Rotator](): KindAngle,
	reflect.TypeFor[Angle]():   KindAngle,
}

// newFloats returns a member for n adjacent floats.
func newFloats[F float32 | float64](f *Field, i, n int) (member, error) {
	f.Kind = cmp.Or(f.Kind, KindScalar)
	if want := kinds[f.Kind].values; want != 0 && want != n {
		return member{}, fmt.Errorf("%d numbers, but a %s has %d", n, f.Kind, want)
	}
	if c, _ := f.Kind.Class(); c == ClassInteger || c == ClassBytes {
		return member{}, fmt.Errorf("a float cannot be a %s", f.Kind)
	}
	f.Count = n
	store := func(s *Schema, p unsafe.Pointer, fr *Frame) error {
		var buf [maxValues]float64
		dst := unsafe.Slice((*F)(p), n)
		for k, v := range s.RestoreField(buf[:0], fr, i) {
			dst[k] = F(v)
		}
		return nil
	}
	return member{load: loadNumbers[F](i, n), store: store}, nil
}

// loadNumbers returns the load function of n adjacent numbers that are sent with a resolution.
func loadNumbers[N integer | float32 | float64](i, n int) func(s *Schema, fr *Frame, p unsafe.Pointer) error {
	return func(s *Schema, fr *Frame, p unsafe.Pointer) error {
		var buf [maxValues]float64
		for k, v := range unsafe.Slice((*N)(p), n) {
			buf[k] = float64(v)
		}
		return s.QuantizeField(fr, i, buf[:n])
	}
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// integers are functions that return a member for n adjacent integers of type t.
var integers = map[reflect.Kind]func(f *Field, t reflect.Type, i, n int) (member, error){
	reflect.Int:    newIntegers[int],
	reflect.Int8:   newIntegers[int8],
	reflect.Int16:  newIntegers[int16],
	reflect.Int32:  newIntegers[int32],
	reflect.Int64:  newIntegers[int64],
	reflect.Uint:   newIntegers[uint],
	reflect.Uint8:  newIntegers[uint8],
	reflect.Uint16: newIntegers[uint16],
	reflect.Uint32: newIntegers[uint32],
	reflect.Uint64: newIntegers[uint64],
}

// newIntegers returns a member for n adjacent integers of type t. By default they become a uint or
// int field of the width of t. The option kind=scalar makes them numbers with a resolution, whose
// differences are taken by subtraction.
func newIntegers[I integer](f *Field, t reflect.Type, i, n int) (member, error) {
	if f.Kind == "" {
		f.Kind = KindUint
		if ^I(0) < 0 {
			f.Kind = KindInt
		}
	}
	f.Count = n
	if c, _ := f.Kind.Class(); c != ClassInteger {
		store := func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			var buf [maxValues]float64
			dst := unsafe.Slice((*I)(p), n)
			for k, v := range s.RestoreField(buf[:0], fr, i) {
				dst[k] = nearest[I](v)
			}
			return nil
		}
		return member{load: loadNumbers[I](i, n), store: store}, nil
	}
	if f.Width == 0 && f.Kind != KindBool {
		f.Width = t.Bits()
	}
	if f.Width > t.Bits() {
		return member{}, fmt.Errorf("width %d, but %v has %d bits", f.Width, t, t.Bits())
	}
	set := func(s *Schema, fr *Frame, k int, v I) error { return s.SetUint(fr, i, k, uint64(v)) }
	get := func(s *Schema, fr *Frame, k int) I { return I(s.Uint(fr, i, k)) }
	if f.Kind == KindInt {
		set = func(s *Schema, fr *Frame, k int, v I) error { return s.SetInt(fr, i, k, int64(v)) }
		get = func(s *Schema, fr *Frame, k int) I { return I(s.Int(fr, i, k)) }
	}
	return newValues(n, set, get), nil
}

// nearest returns the value of I nearest to v. A conversion would truncate, and its result outside
// the range of I depends on the processor.
func nearest[I integer](v float64) I {
	lo, hi := I(0), ^I(0)
	if hi < 0 {
		bits := 8 * unsafe.Sizeof(lo)
		lo = 1 << (bits - 1)
		hi = ^lo
	}
	switch v = math.Round(v); {
	case v <= float64(lo):
		return lo
	case v >= float64(hi):
		return hi
	}
	return I(v)
}

// newBools returns a member for n adjacent booleans.
func newBools(f *Field, i, n int) member {
	f.Count = n
	set := func(s *Schema, fr *Frame, k int, v bool) error {
		if v {
			return s.SetUint(fr, i, k, 1)
		}
		return s.SetUint(fr, i, k, 0)
	}
	return newValues(n, set, func(s *Schema, fr *Frame, k int) bool { return s.Uint(fr, i, k) != 0 })
}

// newValues returns a member for n adjacent values of type T, each of which set and get convert.
func newValues[T any](n int, set func(*Schema, *Frame, int, T) error, get func(*Schema, *Frame, int) T) member {
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			for k, v := range unsafe.Slice((*T)(p), n) {
				if err := set(s, fr, k, v); err != nil {
					return err
				}
			}
			return nil
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			dst := unsafe.Slice((*T)(p), n)
			for k := range dst {
				dst[k] = get(s, fr, k)
			}
			return nil
		},
	}
}

// newBlob returns a member for a byte string, which get returns and set replaces.
func newBlob(i int, get func(p unsafe.Pointer) []byte, set func(p unsafe.Pointer, b []byte)) member {
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error { return s.SetBytes(fr, i, get(p)) },
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			set(p, s.BytesOf(fr, i))
			return nil
		},
	}
}

func newBytes(i int) member {
	get := func(p unsafe.Pointer) []byte { return *(*[]byte)(p) }
	return newBlob(i, get, func(p unsafe.Pointer, b []byte) {
		dst := (*[]byte)(p)
		*dst = append((*dst)[:0], b...)
	})
}

func newByteArray(i, n int) member {
	get := func(p unsafe.Pointer) []byte { return unsafe.Slice((*byte)(p), n) }
	return newBlob(i, get, func(p unsafe.Pointer, b []byte) { copy(get(p), b) })
}

func newString(i int) member {
	get := func(p unsafe.Pointer) []byte {
		v := *(*string)(p)
		return unsafe.Slice(unsafe.StringData(v), len(v))
	}
	return newBlob(i, get, func(p unsafe.Pointer, b []byte) {
		if v := (*string)(p); *v != string(b) {
			*v = string(b)
		}
	})
}
