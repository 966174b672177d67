package simnet

import "time"

// Queue sends values over a link and holds them until they arrive, in virtual time: times are durations
// since any start. Both copies of a duplicated packet are the same value. It is not safe for concurrent use.
type Queue[T any] struct {
	link     *Link
	flying   schedule[T]
	arrivals []time.Duration
}

// NewQueue returns an empty queue over link.
func NewQueue[T any](link *Link) *Queue[T] { return &Queue[T]{link: link} }

// Push sends v in a packet of so many bytes, and returns how many copies will arrive: 0, 1 or 2.
func (q *Queue[T]) Push(now time.Duration, v T, size int) int {
	q.arrivals = q.link.Send(q.arrivals[:0], now, size)
	for _, at := range q.arrivals {
		q.flying.add(at, v)
	}
	return len(q.arrivals)
}

// Next returns when the next value arrives, or false if none is on its way.
func (q *Queue[T]) Next() (at time.Duration, ok bool) { return q.flying.next() }

// Pop returns the next value that has arrived by now, and when, or false if there is none. Values come
// in order of arrival.
func (q *Queue[T]) Pop(now time.Duration) (v T, at time.Duration, ok bool) {
	if next, some := q.flying.next(); !some || next > now {
		return v, 0, false
	}
	v, at = q.flying.remove()
	return v, at, true
}

// Len returns how many values are on their way.
func (q *Queue[T]) Len() int { return q.flying.len() }
