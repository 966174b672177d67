package statesync

import "math"

// accumulator decides whose turn it is where not all can be sent: each object's priority is added up tick by tick, those
// with the largest sum go first, and what was sent starts from zero again. So whatever has a priority above zero gets
// its turn: docs/state-sync.md has how late. The zero value is empty. It allocates nothing once its objects are known.
type accumulator struct {
	entries table[entry]
	ids     []uint16 // of live entries, in no order
	heap    []claim
}

type entry struct {
	sum  float64
	at   uint16 // in ids
	live bool
}

// claim is an entry while an order is made.
type claim struct {
	sum float64
	id  uint16
}

// Add adds an object's priority, as the object's for this tick. NaN, infinities and numbers below 0 are a
// [*PriorityError], and change nothing. With 0 an object waits on, or, if it never had more, for ever.
func (a *accumulator) Add(id uint16, priority float64) error {
	if err := checkPriority(id, priority); err != nil {
		return err
	}
	e := a.entries.at(id)
	if !e.live {
		*e = entry{at: uint16(len(a.ids)), live: true}
		a.ids = append(a.ids, id)
	}
	e.sum = min(e.sum+priority, math.MaxFloat64)
	return nil
}

func checkPriority(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return &PriorityError{id, priority}
	}
	return nil
}

// Sum is what an object's priorities add up to since it was last sent.
func (a *accumulator) Sum(id uint16) float64 { return a.entries.at(id).sum }

// Sent says that an object was sent: it starts from zero.
func (a *accumulator) Sent(id uint16) { a.entries.at(id).sum = 0 }

// Remove forgets an object.
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

// Len is how many objects there are.
func (a *accumulator) Len() int { return len(a.ids) }

// Start begins an order of all objects whose sum is above zero. It takes time in proportion to their number.
func (a *accumulator) Start() {
	a.heap = a.heap[:0]
	for _, id := range a.ids {
		if s := a.entries.at(id).sum; s > 0 {
			a.heap = append(a.heap, claim{s, id})
		}
	}
	for i := len(a.heap)/2 - 1; i >= 0; i-- {
		a.sink(i)
	}
}

// Next gives the next object of the order that Start began: the largest sum first, of equal ones the lowest id. It says
// false after the last. Sums that change meanwhile do not change the order.
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

func (t claim) before(o claim) bool { return t.sum > o.sum || t.sum == o.sum && t.id < o.id }

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
