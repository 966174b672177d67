package snapshot

import (
	"reflect"
	"unsafe"
)

// CorruptSets changes the sets that the decoder holds, within bounds.
func (d *Decoder) CorruptSets() {
	for _, p := range d.sets.at {
		if s := p.thing; s != nil && len(s.ints) > 0 {
			if f := &s.schema.fields[0]; s.ints[0] < f.Hi {
				s.ints[0]++
			} else {
				s.ints[0]--
			}
		}
	}
}

// CorruptStates changes the states that the decoder keeps.
func (d *Decoder) CorruptStates() { corrupt(&d.states) }

// CorruptStates changes the states that the encoder keeps.
func (e *Encoder) CorruptStates() { corrupt(&e.states) }

func corrupt(s *shelf[*state]) {
	for _, p := range s.at {
		if p.thing != nil {
			p.thing.changed[0].P ^= 0x1000
			p.thing.gone[0].P ^= 0x1000
		}
	}
}

// States is how many states the encoder keeps, and States how many the decoder does.
func (e *Encoder) States() int { return e.states.used }

// States is how many states the decoder keeps.
func (d *Decoder) States() int { return d.states.used }

// Sets is how many sets the decoder keeps.
func (d *Decoder) Sets() int { return d.sets.used }

// FlipStateBytes flips each byte of a new state in turn and gives how many of them the hash did not see.
func FlipStateBytes(s *Schema) (unseen, all int) {
	st, set := s.newState(), s.NewSet()
	before := hash(set, st)
	flip := func(at unsafe.Pointer, n uintptr) {
		for i := range n {
			b := (*byte)(unsafe.Add(at, i))
			*b ^= 1
			if hash(set, st) == before {
				unseen++
			}
			all++
			*b ^= 1
		}
	}
	v := reflect.ValueOf(st).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Slice {
			flip(f.Addr().UnsafePointer(), f.Type().Size())
		} else if f.Len() > 0 {
			flip(f.Index(0).Addr().UnsafePointer(), f.Type().Elem().Size()*uintptr(f.Len()))
		}
	}
	return unseen, all
}

// Free is how many states the encoder keeps to use again.
func (e *Encoder) Free() int { return len(e.states.free) }

// Names that only tests outside of the package need.
const MinRing = minRing

var ErrSent = errSent

func BytesComponents(n int) int { return bytesComponents(n) }
