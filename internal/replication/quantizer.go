package replication

import (
	"bytes"
	"reflect"
	"slices"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Quantizer quantizes the objects of a world. It stores the last value of each id with its row, and
// quantizes only values that changed, because most objects of a large world are at rest. Not safe
// for concurrent use.
type Quantizer[T any] struct {
	typ  *snapshot.Type[T]
	flat bool    // T contains no references, so equal bytes are equal values
	kept []T     // last value by id
	rows []int32 // row of each value
	has  []bool  // whether kept and rows are valid, by id
}

// NewQuantizer returns a quantizer without objects.
func NewQuantizer[T any](typ *snapshot.Type[T]) Quantizer[T] {
	return Quantizer[T]{typ: typ, flat: flat(reflect.TypeFor[T]())}
}

func flat(t reflect.Type) bool {
	switch kind := t.Kind(); kind {
	case reflect.Struct:
		for f := range t.Fields() {
			if !flat(f.Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return flat(t.Elem())
	default:
		return kind >= reflect.Bool && kind <= reflect.Complex128
	}
}

// Row returns the row of an object, valid until the next call. A value that its field cannot hold
// is an error that wraps a [*schema.RangeError].
func (q *Quantizer[T]) Row(id uint16, v *T) ([]int32, error) {
	i, n := int(id), q.typ.Schema().Components()
	if !q.flat {
		i = 0
	}
	if i >= len(q.has) {
		more := i + 1 - len(q.has)
		q.kept = slices.Grow(q.kept, more)[:i+1]
		q.has = slices.Grow(q.has, more)[:i+1]
		q.rows = slices.Grow(q.rows, more*n)[:(i+1)*n]
	}
	row := q.rows[i*n : (i+1)*n]
	if q.has[i] && bytes.Equal(bytesOf(v), bytesOf(&q.kept[i])) {
		return row, nil
	}
	if err := q.typ.Quantize(row, v); err != nil {
		q.has[i] = false
		return nil, err
	}
	if q.flat {
		q.kept[i], q.has[i] = *v, true
	}
	return row, nil
}

func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
