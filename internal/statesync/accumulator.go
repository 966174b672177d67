package statesync

import (
	"math"
	"slices"
)

// accumulator is a priority accumulator. It adds up the priorities of each object until the object
// is sent; the object with the highest sum is next. Every object with a priority above zero is sent
// in bounded time, see docs/state-sync.md. The zero value is empty. It does not allocate once warm.
type accumulator struct {
	// keys is a tournament tree of n objects. Their own keys begin at leaves, a power of 4. Each
	// element i from 1 to leaves-1 is the maximum of its children, 4*i to 4*i+3.
	keys      []sumKey
	leaves, n int
}

// sumKey is a sum and an index in ascending order of ids, or 0. Keys are in ascending order of
// sums, then in descending order of indices. The sum has 36 bits of precision.
type sumKey uint64

const indexBits = 16

func keyOf(sum float64, at int) sumKey {
	if sum == 0 {
		return 0
	}
	return sumKey(math.Float64bits(sum)>>indexBits<<indexBits | uint64(^uint16(at)))
}

func (k sumKey) index() int { return int(^uint16(k)) }

// Open starts a tick of n objects and returns the slice of their keys. The caller sets all of them
// before Start.
func (a *accumulator) Open(n int) []sumKey {
	for a.leaves, a.n = 1, n; a.leaves < n; {
		a.leaves *= 4
	}
	a.keys = slices.Grow(a.keys[:0], a.leaves+n+3)[:a.leaves+n+3]
	return a.keys[a.leaves : a.leaves+n]
}

// add returns the sum of an object with its priority for this tick. The caller sets the sum to zero
// when the object is sent.
func add(sum, priority float64) float64 {
	if sum += priority; sum > math.MaxFloat64 {
		return math.MaxFloat64
	}
	return sum
}

// Start builds the tree from the keys of the objects.
func (a *accumulator) Start() {
	for from, to := a.leaves, a.leaves+a.n; from > 1; from, to = from/4, to/4 {
		for ; to%4 != 0; to++ {
			a.keys[to] = 0
		}
		for i := from / 4; i < to/4; i++ {
			k := a.keys[4*i : 4*i+4]
			a.keys[i] = max(k[0], k[1], k[2], k[3])
		}
	}
}

// Next returns the next object in descending order of sums, then ascending ids, and reports false
// after the last one. Objects whose sum is zero are omitted. Later changes of sums do not affect
// the order.
func (a *accumulator) Next() (at int, ok bool) {
	if a.n == 0 || a.keys[1] == 0 {
		return 0, false
	}
	at = a.keys[1].index()
	highest := sumKey(0)
	i := a.leaves + at
	for a.keys[i] = 0; i > 1; a.keys[i] = highest {
		highest = max(a.keys[i^1], a.keys[i^2], a.keys[i^3], highest)
		i >>= 2
	}
	return at, true
}

// table contains values by object id, in pages that are allocated when first used.
type table[T any] struct {
	pages [256]*[256]T
}

func (t *table[T]) at(id uint16) *T { return &t.page(id)[id&255] }

// page returns the values of the ids with the same high bits, by low bits.
func (t *table[T]) page(id uint16) *[256]T {
	p := &t.pages[id>>8]
	if *p == nil {
		*p = new([256]T)
	}
	return *p
}

// get returns a value, without allocation.
func (t *table[T]) get(id uint16) (v T) {
	if p := t.pages[id>>8]; p != nil {
		v = p[id&255]
	}
	return v
}
