package snapshot

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// hash returns the hash of a set and its model state, for the divergence check.
func hash(set *Set, st *modelState) uint16 {
	h := fnv.Offset
	for _, o := range set.objects {
		h = h.Add(o.word())
	}
	for _, v := range set.ints {
		h = h.Add(uint64(uint32(v)))
	}
	for i := range stateFields {
		h = stateFields[i].hash(h, unsafe.Pointer(st))
	}
	return h.Fold16()
}

// stateFields are the fields of a model state. Reflection ensures that the hash includes all of
// them.
var stateFields = fieldsOf(reflect.TypeFor[modelState]())

// stateField is a field of a model state: a slice, or a value.
type stateField struct {
	offset uintptr
	slice  bool
	size   uintptr // of an element
	runs   []run   // of an element
}

// run is consecutive numbers of one size.
type run struct {
	offset, size uintptr
	n            int
}

func fieldsOf(t reflect.Type) (fields []stateField) {
	for f := range t.Fields() {
		x := stateField{offset: f.Offset, slice: f.Type.Kind() == reflect.Slice}
		elem := f.Type
		if x.slice {
			elem = elem.Elem()
		}
		x.size, x.runs = elem.Size(), appendRuns(nil, elem, 0)
		fields = append(fields, x)
	}
	return fields
}

func appendRuns(runs []run, t reflect.Type, offset uintptr) []run {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			runs = appendRuns(runs, f.Type, offset+f.Offset)
		}
	case reflect.Array:
		elem := appendRuns(nil, t.Elem(), 0)
		for i := range t.Len() {
			for _, r := range elem {
				r.offset += offset + uintptr(i)*t.Elem().Size()
				runs = appendRun(runs, r)
			}
		}
	case reflect.Bool, reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		runs = appendRun(runs, run{offset, t.Size(), 1})
	default:
		panic(fmt.Sprintf("snapshot: a model state contains a %v, whose size depends on the processor", t))
	}
	return runs
}

// appendRun appends a run, or extends the last one.
func appendRun(runs []run, r run) []run {
	if k := len(runs) - 1; k >= 0 && runs[k].size == r.size && runs[k].offset+uintptr(runs[k].n)*r.size == r.offset {
		runs[k].n += r.n
		return runs
	}
	return append(runs, r)
}

// elements returns the address of the first element, the number of elements, and the capacity.
func (f *stateField) elements(st unsafe.Pointer) (first unsafe.Pointer, n, capacity int) {
	first = unsafe.Add(st, f.offset)
	if !f.slice {
		return first, 1, 1
	}
	s := (*struct {
		first       unsafe.Pointer
		n, capacity int
	})(first)
	return s.first, s.n, s.capacity
}

func (f *stateField) hash(h fnv.Hash, st unsafe.Pointer) fnv.Hash {
	first, n, _ := f.elements(st)
	for i := range n {
		elem := unsafe.Add(first, uintptr(i)*f.size)
		for _, r := range f.runs {
			h = r.hash(h, unsafe.Add(elem, r.offset))
		}
	}
	return h.Add(uint64(n))
}

func (r *run) hash(h fnv.Hash, first unsafe.Pointer) fnv.Hash {
	switch r.size {
	case 1:
		return addAll[uint8](h, first, r.n)
	case 2:
		return addAll[uint16](h, first, r.n)
	case 4:
		return addAll[uint32](h, first, r.n)
	}
	return addAll[uint64](h, first, r.n)
}

func addAll[T uint8 | uint16 | uint32 | uint64](h fnv.Hash, first unsafe.Pointer, n int) fnv.Hash {
	for _, v := range unsafe.Slice((*T)(first), n) {
		h = h.Add(uint64(v))
	}
	return h
}

// memory returns the size of the state in bytes.
func (s *modelState) memory() int {
	sum := int(unsafe.Sizeof(*s))
	for i := range stateFields {
		if f := &stateFields[i]; f.slice {
			_, _, capacity := f.elements(unsafe.Pointer(s))
			sum += capacity * int(f.size)
		}
	}
	return sum
}
