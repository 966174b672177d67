package snapshot

import (
	"fmt"
	"reflect"
	"unsafe"
)

// digest is a hash of integers: FNV-1a of 64 bits, in which each number is taken whole.
type digest uint64

const (
	digestStart = 14695981039346656037
	digestPrime = 1099511628211
)

func (d *digest) add(v uint64) { *d = (*d ^ digest(v)) * digestPrime }

// fold makes 16 bits of it.
func (d digest) fold() uint16 { return uint16(d ^ d>>16 ^ d>>32 ^ d>>48) }

// hash takes in a set and the state beside it.
func hash(set *Set, st *modelState) uint16 {
	d := digest(digestStart)
	for _, o := range set.objects {
		d.add(uint64(o.ID)<<8 | uint64(o.Generation))
	}
	for _, v := range set.ints {
		d.add(uint64(uint32(v)))
	}
	for i := range stateParts {
		stateParts[i].hash(&d, unsafe.Pointer(st))
	}
	return d.fold()
}

// stateParts is what a state consists of, so that a hash leaves nothing out, whatever the models hold.
var stateParts = partsOf(reflect.TypeFor[modelState]())

// part is one field of a state: a slice, or a value of its own.
type part struct {
	offset uintptr
	slice  bool
	size   uintptr // of an element
	runs   []run   // of an element
}

// run is numbers of one size, in a row.
type run struct {
	offset, size uintptr
	n            int
}

func partsOf(t reflect.Type) (parts []part) {
	for f := range t.Fields() {
		p := part{offset: f.Offset, slice: f.Type.Kind() == reflect.Slice}
		elem := f.Type
		if p.slice {
			elem = elem.Elem()
		}
		p.size, p.runs = elem.Size(), appendRuns(nil, elem, 0)
		parts = append(parts, p)
	}
	return parts
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
				runs = join(runs, r)
			}
		}
	case reflect.Bool, reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		runs = join(runs, run{offset, t.Size(), 1})
	default:
		panic(fmt.Sprintf("snapshot: a state holds a %v, which is not of one size on every processor", t))
	}
	return runs
}

// join appends a run, or makes the last one longer.
func join(runs []run, r run) []run {
	if k := len(runs) - 1; k >= 0 && runs[k].size == r.size && runs[k].offset+uintptr(runs[k].n)*r.size == r.offset {
		runs[k].n += r.n
		return runs
	}
	return append(runs, r)
}

// elements gives where the part's elements begin, how many there are, and for how many there is room.
func (p *part) elements(st unsafe.Pointer) (at unsafe.Pointer, n, room int) {
	at = unsafe.Add(st, p.offset)
	if !p.slice {
		return at, 1, 1
	}
	s := (*struct {
		at      unsafe.Pointer
		n, room int
	})(at)
	return s.at, s.n, s.room
}

func (p *part) hash(d *digest, st unsafe.Pointer) {
	at, n, _ := p.elements(st)
	for i := range n {
		elem := unsafe.Add(at, uintptr(i)*p.size)
		for _, r := range p.runs {
			r.hash(d, unsafe.Add(elem, r.offset))
		}
	}
	d.add(uint64(n))
}

func (r *run) hash(d *digest, at unsafe.Pointer) {
	switch r.size {
	case 1:
		for _, v := range unsafe.Slice((*uint8)(at), r.n) {
			d.add(uint64(v))
		}
	case 2:
		for _, v := range unsafe.Slice((*uint16)(at), r.n) {
			d.add(uint64(v))
		}
	case 4:
		for _, v := range unsafe.Slice((*uint32)(at), r.n) {
			d.add(uint64(v))
		}
	default:
		for _, v := range unsafe.Slice((*uint64)(at), r.n) {
			d.add(v)
		}
	}
}

// memory is how many bytes a state takes.
func (s *modelState) memory() int {
	sum := int(unsafe.Sizeof(*s))
	for i := range stateParts {
		if p := &stateParts[i]; p.slice {
			_, _, room := p.elements(unsafe.Pointer(s))
			sum += room * int(p.size)
		}
	}
	return sum
}
