package transport

import (
	"sync/atomic"
	"time"
)

// RoundTripBounds are the upper bounds of the buckets of [RoundTrips]; a last bucket has what took longer.
var RoundTripBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, 1 * time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	35 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// RoundTrips is a histogram of measured round trips: each side measures about one a second.
type RoundTrips struct {
	Counts [len(RoundTripBounds) + 1]uint64
	Sum    time.Duration
}

// Plus returns the counts of both.
func (r RoundTrips) Plus(o RoundTrips) RoundTrips {
	for i, n := range o.Counts {
		r.Counts[i] += n
	}
	r.Sum += o.Sum
	return r
}

func (r *RoundTrips) observe(d time.Duration) {
	r.Counts[bucket(d)]++
	r.Sum += d
}

func bucket(d time.Duration) int {
	i := 0
	for i < len(RoundTripBounds) && d > RoundTripBounds[i] {
		i++
	}
	return i
}

// tripCounters is a RoundTrips that many connections add to.
type tripCounters struct {
	counts [len(RoundTripBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (c *tripCounters) observe(d time.Duration) {
	c.counts[bucket(d)].Add(1)
	c.sum.Add(int64(d))
}

func (c *tripCounters) snapshot() (r RoundTrips) {
	for i := range c.counts {
		r.Counts[i] = c.counts[i].Load()
	}
	r.Sum = time.Duration(c.sum.Load())
	return r
}
