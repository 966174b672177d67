package transport

import (
	"iter"
	"math"
	"sync/atomic"
	"time"
)

// rttBounds are the upper bounds of the buckets of [RTTHistogram]; a last bucket has what took longer.
var rttBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, 1 * time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	35 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// RTTHistogram is a histogram of measured round trips: each side measures about one a second.
type RTTHistogram struct {
	Counts [len(rttBounds) + 1]uint64
	Sum    time.Duration
}

// Buckets iterates over the upper bounds of the buckets, in ascending order, and the number of measurements
// in each. The last bound is the largest duration.
func (r RTTHistogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(bound time.Duration, n uint64) bool) {
		for i, n := range r.Counts {
			bound := time.Duration(math.MaxInt64)
			if i < len(rttBounds) {
				bound = rttBounds[i]
			}
			if !yield(bound, n) {
				return
			}
		}
	}
}

// Plus returns the counts of both.
func (r RTTHistogram) Plus(o RTTHistogram) RTTHistogram {
	for i, n := range o.Counts {
		r.Counts[i] += n
	}
	r.Sum += o.Sum
	return r
}

func (r *RTTHistogram) observe(d time.Duration) {
	r.Counts[bucket(d)]++
	r.Sum += d
}

func bucket(d time.Duration) int {
	i := 0
	for i < len(rttBounds) && d > rttBounds[i] {
		i++
	}
	return i
}

// tripCounters is a RTTHistogram that many connections add to.
type tripCounters struct {
	counts [len(rttBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (c *tripCounters) observe(d time.Duration) {
	c.counts[bucket(d)].Add(1)
	c.sum.Add(int64(d))
}

func (c *tripCounters) snapshot() (r RTTHistogram) {
	for i := range c.counts {
		r.Counts[i] = c.counts[i].Load()
	}
	r.Sum = time.Duration(c.sum.Load())
	return r
}
