// Package ringcache implements a ring of the most recent values of a stream by sequence number.
package ringcache

import "iter"

// Ring stores up to Cap values of type T, each under a 64-bit sequence number: number s in slot
// s mod Cap. Slots are reused in place, so that memory that a value owns, such as a backing array,
// is reused too. Nothing is allocated after creation. Every number is valid, including 0 and
// 2^64-1. Not safe for concurrent use.
type Ring[T any] struct {
	slots []slot[T]
}

// slot stores one value; seq is valid only if used is set.
type slot[T any] struct {
	seq   uint64
	used  bool
	value T
}

// New returns an empty ring of capacity slots with zero values. It panics if capacity is below 1.
func New[T any](capacity int) *Ring[T] {
	return NewFunc[T](capacity, nil)
}

// NewFunc returns an empty ring of capacity slots and calls prepare, unless it is nil, once for the
// value of each slot in their order, for example to allocate memory. It panics if capacity is below
// 1.
func NewFunc[T any](capacity int, prepare func(slot *T)) *Ring[T] {
	if capacity < 1 {
		panic("ringcache: capacity below 1")
	}
	r := &Ring[T]{slots: make([]slot[T], capacity)}
	if prepare != nil {
		for i := range r.slots {
			prepare(&r.slots[i].value)
		}
	}
	return r
}

// Put stores seq in its slot and returns a pointer to the value of the slot, for the caller to
// overwrite. If the slot contained another number, older or newer, that number is evicted, and the
// slot still has its value. If seq is stored already, Put returns its value. The pointer is valid
// until the next Put of a number in the same slot.
func (r *Ring[T]) Put(seq uint64) *T {
	s := &r.slots[seq%uint64(len(r.slots))]
	s.seq, s.used = seq, true
	return &s.value
}

// Get returns the value stored under seq, or nil if there is none. The pointer is valid until the
// next Put of a number in the same slot.
func (r *Ring[T]) Get(seq uint64) *T {
	s := &r.slots[seq%uint64(len(r.slots))]
	if s.seq != seq || !s.used {
		return nil
	}
	return &s.value
}

// Delete removes seq if it is stored. Its slot keeps the value for reuse.
func (r *Ring[T]) Delete(seq uint64) {
	if s := &r.slots[seq%uint64(len(r.slots))]; s.seq == seq {
		s.used = false
	}
}

// All yields the stored numbers and their values, in the order of the slots. The loop may delete
// any number.
func (r *Ring[T]) All() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		for i := range r.slots {
			if s := &r.slots[i]; s.used && !yield(s.seq, &s.value) {
				return
			}
		}
	}
}

// Cap returns the number of slots.
func (r *Ring[T]) Cap() int { return len(r.slots) }

// Reset deletes every number. The slots keep their values for reuse.
func (r *Ring[T]) Reset() {
	for i := range r.slots {
		r.slots[i].used = false
	}
}
