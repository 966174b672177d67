package statesync

import (
	"math"
	"slices"
)

// accumulator is a priority accumulator. It adds up the priorities of each object until the object
// is sent; the object with the highest sum is next. Every object with a priority above zero is sent
// in bounded time, see docs/state-sync.md. The zero value is empty. It does not allocate once warm.
type accumulator struct {
	heap  []sumKey
	rest  []sumKey // those below bound
	bound sumKey   // so that what Next probably does not return is not sorted
	last  sumKey   // the last one that Next returned
}

// sumKey is a sum and an index in ascending order of ids. Keys are in ascending order of sums, then
// in descending order of indices. The sum has 36 bits of precision.
type sumKey uint64

const indexBits = 16

func keyOf(sum float64, at int) sumKey {
	return sumKey(math.Float64bits(sum)>>indexBits<<indexBits | uint64(^uint16(at)))
}

func (k sumKey) index() int { return int(^uint16(k)) }

// boundMargin is the bound relative to the lowest sum that Next returned in the tick before. To
// sort some keys more takes less time than to sort all of the others.
const boundMargin = 0.93

// Open starts a tick without objects. It reserves memory for n.
func (a *accumulator) Open(n int) {
	if a.bound = a.last; a.last < math.MaxUint64 {
		a.bound = keyOf(math.Float64frombits(uint64(a.last))*boundMargin, 0)
	}
	a.last = math.MaxUint64
	a.heap, a.rest = slices.Grow(a.heap[:0], n), slices.Grow(a.rest[:0], n)
}

// Add adds the priority of an object for this tick to its sum, which the caller sets to zero when
// the object is sent. Next returns at, which ascends.
func (a *accumulator) Add(sum *float64, priority float64, at int) {
	v := *sum + priority
	if v == 0 {
		return
	}
	if v > math.MaxFloat64 {
		v = math.MaxFloat64
	}
	*sum = v
	if k := keyOf(v, at); k >= a.bound {
		a.heap = append(a.heap, k)
	} else {
		a.rest = append(a.rest, k)
	}
}

// Start orders the added objects.
func (a *accumulator) Start() {
	for i := len(a.heap)/2 - 1; i >= 0; i-- {
		sink(a.heap, i)
	}
}

// Next returns the next object in descending order of sums, then ascending ids, and reports false
// after the last one. Objects whose sum is zero are omitted. Later changes of sums do not affect
// the order.
func (a *accumulator) Next() (at int, ok bool) {
	if len(a.heap) == 0 {
		a.heap, a.rest = a.rest, a.heap
		a.Start()
	}
	n := len(a.heap) - 1
	if n < 0 {
		return 0, false
	}
	a.last = a.heap[0]
	a.heap[0] = a.heap[n]
	a.heap = a.heap[:n]
	sink(a.heap, 0)
	return a.last.index(), true
}

// sink moves the key at i down to its place in a heap whose highest key is the first.
func sink(h []sumKey, i int) {
	if i >= len(h) {
		return
	}
	k := h[i]
	for c := 2*i + 1; c < len(h); c = 2*i + 1 {
		if c+1 < len(h) {
			c += int((h[c] - h[c+1]) >> 63) // without a branch: keys are below 1<<63, since no sum is negative
		}
		if h[c] <= k {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = k
}

// table contains values by object id, in pages that are allocated when first used.
type table[T any] struct {
	pages [256]*[256]T
}

func (t *table[T]) at(id uint16) *T {
	p := &t.pages[id>>8]
	if *p == nil {
		*p = new([256]T)
	}
	return &(*p)[id&255]
}

// get returns a value, without allocation.
func (t *table[T]) get(id uint16) (v T) {
	if p := t.pages[id>>8]; p != nil {
		v = p[id&255]
	}
	return v
}
