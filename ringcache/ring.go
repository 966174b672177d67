// Package ringcache keeps the last values of a numbered stream, addressed by sequence number.
package ringcache

// Ring holds up to Cap values of type T, each under a 64-bit sequence number; number s lives in slot s mod Cap. The
// slots are made once and reused in place, so that what a value owns, such as a backing array, is reused with it.
// Nothing is allocated after creation. Every number is a valid one, 0 and 2^64-1 included. Not safe for concurrent
// use.
type Ring[T any] struct {
	slots []slot[T]
}

// slot is one place; seq means nothing unless used.
type slot[T any] struct {
	seq   uint64
	used  bool
	value T
}

// New returns an empty ring of capacity slots with zero values. It panics if capacity is below 1.
func New[T any](capacity int) *Ring[T] {
	return NewFunc[T](capacity, nil)
}

// NewFunc returns an empty ring of capacity slots and calls prepare, unless it is nil, once on each of them, to prepare
// what the slot keeps for good. It panics if capacity is below 1.
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

// Put claims the slot of seq and returns it. Whatever number was there, older or newer, is evicted, but its value is
// still in place, for the caller to overwrite; putting a stored number again returns its value as it is. The pointer
// is valid until the next Put of a number in the same slot.
func (r *Ring[T]) Put(seq uint64) *T {
	s := &r.slots[seq%uint64(len(r.slots))]
	s.seq, s.used = seq, true
	return &s.value
}

// Get returns the value stored under seq, or nil if it was never stored or has been evicted. The pointer is valid
// until the next Put of a number in the same slot.
func (r *Ring[T]) Get(seq uint64) *T {
	s := &r.slots[seq%uint64(len(r.slots))]
	if s.seq != seq || !s.used {
		return nil
	}
	return &s.value
}

// Cap returns the number of slots.
func (r *Ring[T]) Cap() int {
	return len(r.slots)
}

// Reset forgets every number. The slots keep their values for reuse.
func (r *Ring[T]) Reset() {
	for i := range r.slots {
		r.slots[i].used = false
	}
}
