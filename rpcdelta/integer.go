package rpcdelta

import (
	"math"
	"reflect"
	"unsafe"
)

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// newInteger moves one integer. By default it is a uint or int of the type's
// own width; kind=scalar makes it a number that is subtracted.
func newInteger(f *Field, t reflect.Type, i int) (member, bool) {
	switch t.Kind() {
	case reflect.Int:
		return integerMember[int](f, t, i, KindInt), true
	case reflect.Int8:
		return integerMember[int8](f, t, i, KindInt), true
	case reflect.Int16:
		return integerMember[int16](f, t, i, KindInt), true
	case reflect.Int32:
		return integerMember[int32](f, t, i, KindInt), true
	case reflect.Int64:
		return integerMember[int64](f, t, i, KindInt), true
	case reflect.Uint:
		return integerMember[uint](f, t, i, KindUint), true
	case reflect.Uint8:
		return integerMember[uint8](f, t, i, KindUint), true
	case reflect.Uint16:
		return integerMember[uint16](f, t, i, KindUint), true
	case reflect.Uint32:
		return integerMember[uint32](f, t, i, KindUint), true
	case reflect.Uint64:
		return integerMember[uint64](f, t, i, KindUint), true
	default:
		return member{}, false
	}
}

func integerMember[I integer](f *Field, t reflect.Type, i int, k Kind) member {
	f.defaultKind(k)
	if c, _ := f.Kind.class(); c != classBinary {
		return numberMember[I](i)
	}
	if f.Width == 0 && f.Kind != KindBool {
		f.Width = t.Bits()
	}
	if f.Kind == KindInt {
		return member{
			load: func(s *Schema, fr *Frame, p unsafe.Pointer) error { return s.SetInt(fr, i, 0, int64(*(*I)(p))) },
			store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
				*(*I)(p) = I(s.Int(fr, i, 0))
				return nil
			},
		}
	}
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error { return s.SetUint(fr, i, 0, uint64(*(*I)(p))) },
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			*(*I)(p) = I(s.Uint(fr, i, 0))
			return nil
		},
	}
}

// numberMember moves an integer as a number with a resolution.
func numberMember[I integer](i int) member {
	return member{
		load: func(s *Schema, fr *Frame, p unsafe.Pointer) error {
			v := [1]float64{float64(*(*I)(p))}
			return s.QuantizeField(fr, i, v[:])
		},
		store: func(s *Schema, p unsafe.Pointer, fr *Frame) error {
			var v [1]float64
			*(*I)(p) = nearest[I](s.RestoreField(v[:0], fr, i)[0])
			return nil
		},
	}
}

// nearest is the I nearest to v. A plain conversion would cut off, and outside
// I's range depend on the processor.
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
