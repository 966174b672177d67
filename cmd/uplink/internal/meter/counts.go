package meter

import "reflect"

// Sum returns the sums of the uint64 fields of two structs of counters, including fields within
// structs or arrays. Other fields have the values of a.
func Sum[T any](a, b T) T {
	each(&a, &b, func(x, y uint64) uint64 { return x + y })
	return a
}

// Difference returns the differences a-b of the fields that [Sum] adds.
func Difference[T any](a, b T) T {
	each(&a, &b, func(x, y uint64) uint64 { return x - y })
	return a
}

func each(a, b any, f func(x, y uint64) uint64) {
	var walk func(a, b reflect.Value)
	walk = func(a, b reflect.Value) {
		switch {
		case !a.CanSet():
		case a.Kind() == reflect.Struct:
			for i := range a.NumField() {
				walk(a.Field(i), b.Field(i))
			}
		case a.Kind() == reflect.Array:
			for i := range a.Len() {
				walk(a.Index(i), b.Index(i))
			}
		case a.Kind() == reflect.Uint64:
			a.SetUint(f(a.Uint(), b.Uint()))
		}
	}
	walk(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}
