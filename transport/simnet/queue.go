package simnet

import (
	"time"
)

// Queue sends values over a link and keeps them until they arrive, in virtual time: times are
// durations since a start that the caller chooses. Both copies of a duplicated packet are the same
// value. It is not safe for concurrent use.
type Queue[T any] struct {
	link     *Link
	flying   schedule[T]
	arrivals []time.Duration
}

// NewQueue returns an empty queue over link.
func NewQueue[T any](link *Link) *Queue[T] { return &Queue[T]{link: link} }

// Push sends v in a packet of size bytes, and returns the number of copies that will arrive: 0, 1
// or 2.
func (q *Queue[T]) Push(now time.Duration, v T, size int) int {
	q.arrivals = q.link.Send(q.arrivals[:0], now, size)
	for _, at := range q.arrivals {
		q.flying.add(at, v)
	}
	return len(q.arrivals)
}

// Next returns when the next value arrives, or false if none is in transit.
func (q *Queue[T]) Next() (at time.Duration, ok bool) { return q.flying.next() }

// Pop returns the next value that has arrived by now, and when, or false if there is none. Values
// are returned in order of arrival.
func (q *Queue[T]) Pop(now time.Duration) (v T, at time.Duration, ok bool) {
	if next, some := q.flying.next(); !some || next > now {
		return v, 0, false
	}
	v, at = q.flying.remove()
	return v, at, true
}

// schedule is a queue of values by time, and by insertion among equal times.
type schedule[T any] struct {
	heap  []entry[T]
	count uint64
}

type entry[T any] struct {
	at    time.Duration
	order uint64
	value T
}

func (e entry[T]) before(f entry[T]) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

func (s *schedule[T]) len() int { return len(s.heap) }

// add adds a value.
func (s *schedule[T]) add(at time.Duration, v T) {
	s.heap = append(s.heap, entry[T]{at, s.count, v})
	s.count++
	for i := len(s.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.heap[i].before(s.heap[parent]) {
			return
		}
		s.heap[i], s.heap[parent] = s.heap[parent], s.heap[i]
		i = parent
	}
}

// next returns the earliest time.
func (s *schedule[T]) next() (at time.Duration, ok bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// remove removes the earliest value; the schedule must not be empty.
func (s *schedule[T]) remove() (v T, at time.Duration) {
	first := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap[last] = entry[T]{}
	s.heap = s.heap[:last]
	s.sink()
	return first.value, first.at
}

// sink restores the heap after a change of the root.
func (s *schedule[T]) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && s.heap[child+1].before(s.heap[child]) {
			child++
		}
		if !s.heap[child].before(s.heap[i]) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}
