package schema

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// errNotInteger reports that a type is not an integer.
var errNotInteger = errors.New("not an integer")

// newInteger returns a member for n adjacent integers of type t. By default they become a uint or
// int field of the width of t. The option kind=scalar makes them numbers with a resolution, whose
// differences are taken by subtraction.
func newInteger(f *Field, t reflect.Type, i, n int) (member, error) {
	switch t.Kind() {
	case reflect.Int:
		return integerMember[int](f, t, i, n, KindInt)
	case reflect.Int8:
		return integerMember[int8](f, t, i, n, KindInt)
	case reflect.Int16:
		return integerMember[int16](f, t, i, n, KindInt)
	case reflect.Int32:
		return integerMember[int32](f, t, i, n, KindInt)
	case reflect.Int64:
		return integerMember[int64](f, t, i, n, KindInt)
	case reflect.Uint:
		return integerMember[uint](f, t, i, n, KindUint)
	case reflect.Uint8:
		return integerMember[uint8](f, t, i, n, KindUint)
	case reflect.Uint16:
		return integerMember[uint16](f, t, i, n, KindUint)
	case reflect.Uint32:
		return integerMember[uint32](f, t, i, n, KindUint)
	case reflect.Uint64:
		return integerMember[uint64](f, t, i, n, KindUint)
	default:
		return member{}, errNotInteger
	}
}

func integerMember[I integer](f *Field, t reflect.Type, i, n int, k Kind) (member, error) {
	f.defaultKind(k)
	f.Count = n
	if c, _ := f.Kind.Class(); c != ClassInteger {
		return numberMember[I](i, n), nil
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
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			for k, v := range unsafe.Slice((*I)(p), n) {
				if err := set(s, fr, k, v); err != nil {
					return err
				}
			}
			return nil
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			for k := range n {
				unsafe.Slice((*I)(p), n)[k] = get(s, fr, k)
			}
			return nil
		},
	}, nil
}

// numberMember returns a member for n adjacent integers that are sent as numbers with a resolution.
func numberMember[I integer](i, n int) member {
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			var buf [maxValues]float64
			for k, v := range unsafe.Slice((*I)(p), n) {
				buf[k] = float64(v)
			}
			return s.QuantizeField(fr, i, buf[:n])
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			var buf [maxValues]float64
			dst := unsafe.Slice((*I)(p), n)
			for k, v := range s.RestoreField(buf[:0], fr, i) {
				dst[k] = nearest[I](v)
			}
			return nil
		},
	}
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
