package snapshot

import (
	"reflect"
	"unsafe"
)

// CorruptSets changes the decoder's sets within their bounds.
func (d *Decoder) CorruptSets() {
	for _, e := range d.sets.ring.All() {
		if s := *e; len(s.ints) > 0 {
			if f := &s.schema.fields[0]; s.ints[0] < f.Hi {
				s.ints[0]++
			} else {
				s.ints[0]--
			}
		}
	}
}

// CorruptStates changes the decoder's model states.
func (d *Decoder) CorruptStates() { corrupt(&d.states) }

// CorruptStates changes the encoder's model states.
func (e *Encoder) CorruptStates() { corrupt(&e.states) }

func corrupt(s *stateRing[*modelState]) {
	for _, e := range s.ring.All() {
		(*e).changed[0].P ^= 0x1000
		(*e).removed[0].P ^= 0x1000
	}
}

// Stored returns the numbers of states in use and free, and the size of all in bytes.
func (e *Encoder) Stored() (states, free, bytes int) {
	return e.states.used, len(e.states.free), e.states.memory() + 16*e.sent.Cap() + 2*cap(e.codec.spare)
}

// Stored returns the numbers of states and sets in use.
func (d *Decoder) Stored() (states, sets int) { return d.states.used, d.sets.used }

// Memory returns the size of the stored sets in bytes.
func (w *World) Memory() int {
	sum := w.initial.memory() + w.prior.memory()
	for _, s := range w.sets.All() {
		sum += (*s).memory()
	}
	return sum
}

// Resets returns the number of resets that the decoder requested.
func (e *Encoder) Resets() uint64 { return e.resets }

// FlipStateBytes flips a bit of each byte of a new model state in turn and returns the number of
// bytes that do not change the hash, of all bytes.
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

// Names that only tests outside of the package need.
const MinRing = minRing

var ErrSent = errSent

func BytesComponents(n int) int { return bytesComponents(n) }
