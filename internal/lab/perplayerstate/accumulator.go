package perplayerstate

import "math"

// accumulator is a priority accumulator. It adds up the priorities of each object until the object
// is sent; the object with the highest sum is next. Every object with a priority above zero is sent
// in bounded time, see docs/state-sync.md. The zero value is empty. It does not allocate once it
// knows all objects.
type accumulator struct {
	entries table[entry]
	ids     []uint16 // of live entries, in arbitrary order
	heap    []heapEntry
}

type entry struct {
	sum  float64
	at   uint16 // in ids
	live bool
}

type heapEntry struct {
	sum float64
	id  uint16
}

// Add adds the priority of an object for this tick.
func (a *accumulator) Add(id uint16, priority float64) {
	e := a.entries.at(id)
	if !e.live {
		*e = entry{at: uint16(len(a.ids)), live: true}
		a.ids = append(a.ids, id)
	}
	e.sum = min(e.sum+priority, math.MaxFloat64)
}

// Sent resets the sum of an object.
func (a *accumulator) Sent(id uint16) { a.entries.at(id).sum = 0 }

func (a *accumulator) Remove(id uint16) {
	e := a.entries.at(id)
	if !e.live {
		return
	}
	last := a.ids[len(a.ids)-1]
	a.ids[e.at] = last
	a.entries.at(last).at = e.at
	a.ids = a.ids[:len(a.ids)-1]
	*e = entry{}
}

// Start orders all objects with a sum above zero. It takes time proportional to their number.
func (a *accumulator) Start() {
	a.heap = a.heap[:0]
	for _, id := range a.ids {
		if s := a.entries.at(id).sum; s > 0 {
			a.heap = append(a.heap, heapEntry{s, id})
		}
	}
	for i := len(a.heap)/2 - 1; i >= 0; i-- {
		a.sink(i)
	}
}

// Next returns the next object in descending order of sums, then ascending ids, and reports false
// after the last one. Later changes of sums do not affect the order.
func (a *accumulator) Next() (id uint16, ok bool) {
	n := len(a.heap) - 1
	if n < 0 {
		return 0, false
	}
	id = a.heap[0].id
	a.heap[0] = a.heap[n]
	a.heap = a.heap[:n]
	a.sink(0)
	return id, true
}

func (t heapEntry) before(o heapEntry) bool { return t.sum > o.sum || t.sum == o.sum && t.id < o.id }

func (a *accumulator) sink(i int) {
	h := a.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
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
