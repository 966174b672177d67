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
		f := &stateFields[i]
		first, n, _ := f.elements(st)
		for k := range n {
			for _, r := range f.runs {
				h = r.hash(h, unsafe.Add(first, uintptr(k)*f.size+r.offset))
			}
		}
		h = h.Add(uint64(n))
	}
	return h.Fold16()
}

// stateFields are the fields of a model state. Reflection ensures that the hash includes all of
// them.
var stateFields = fieldsOf(reflect.TypeFor[modelState]())

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
		elem, slice := f.Type, f.Type.Kind() == reflect.Slice
		if slice {
			elem = elem.Elem()
		}
		fields = append(fields, stateField{f.Offset, slice, elem.Size(), appendRuns(nil, elem, 0)})
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
		for i := range t.Len() {
			runs = appendRuns(runs, t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		if k := len(runs) - 1; k >= 0 && runs[k].size == t.Size() && runs[k].offset+uintptr(runs[k].n)*t.Size() == offset {
			runs[k].n++
		} else {
			runs = append(runs, run{offset, t.Size(), 1})
		}
	default:
		panic(fmt.Sprintf("snapshot: a model state contains a %v, whose size depends on the processor", t))
	}
	return runs
}

// elements returns the address of the first element, the number of elements, and the capacity.
func (f *stateField) elements(st *modelState) (first unsafe.Pointer, n, capacity int) {
	first = unsafe.Add(unsafe.Pointer(st), f.offset)
	if !f.slice {
		return first, 1, 1
	}
	s := (*[]struct{})(first)
	return unsafe.Pointer(unsafe.SliceData(*s)), len(*s), cap(*s)
}

func (r *run) hash(h fnv.Hash, first unsafe.Pointer) fnv.Hash {
	switch r.size {
	case 2:
		return addAll[uint16](h, first, r.n)
	case 4:
		return addAll[uint32](h, first, r.n)
	}
	return addAll[uint64](h, first, r.n)
}

func addAll[T uint16 | uint32 | uint64](h fnv.Hash, first unsafe.Pointer, n int) fnv.Hash {
	for _, v := range unsafe.Slice((*T)(first), n) {
		h = h.Add(uint64(v))
	}
	return h
}

// memory returns the size of the state in bytes.
func (s *modelState) memory() (sum int) {
	for i := range stateFields {
		_, _, capacity := stateFields[i].elements(s)
		sum += capacity * int(stateFields[i].size)
	}
	return sum
}
