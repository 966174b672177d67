// Package counts counts dropped datagrams by reason, and round-trip times.
package counts

import (
	"iter"
	"math"
	"time"
)

// Drops counts dropped datagrams by reason. The reasons from UnknownSession on apply to listeners
// only.
type Drops struct {
	Malformed       uint64 // not a datagram of this protocol
	WrongSession    uint64 // session or source address differs from that of the connection in the header
	Unauthenticated uint64 // forged, altered, of another session, or encrypted for another key
	Duplicate       uint64 // received before
	Late            uint64 // payloads after 64 newer datagrams, others after 1,024
	Unexpected      uint64 // kind is invalid in the current state
	UnknownSession  uint64 // belongs to no connection
	Version         uint64 // hellos of another protocol version
	Cookie          uint64 // hellos with an invalid cookie
	RateLimited     uint64 // hellos above the limits
	Token           uint64 // hellos with a refused token
	Suite           uint64 // hellos without a common suite
	Full            uint64 // hellos while there were MaxConns connections
	Overrun         uint64 // forwarded datagrams beyond the capacity of a shard's mailbox
}

// dropReasons contains the names of the fields of [Drops] in their order.
var dropReasons = [...]string{
	"malformed", "wrong_session", "unauthenticated", "duplicate", "late", "unexpected", "unknown_session",
	"version", "cookie", "rate_limited", "token", "suite", "full", "overrun",
}

func (d *Drops) counts() [len(dropReasons)]*uint64 {
	return [...]*uint64{
		&d.Malformed, &d.WrongSession, &d.Unauthenticated, &d.Duplicate, &d.Late, &d.Unexpected, &d.UnknownSession,
		&d.Version, &d.Cookie, &d.RateLimited, &d.Token, &d.Suite, &d.Full, &d.Overrun,
	}
}

// All iterates over the reasons, in snake case, and their counts.
func (d Drops) All() iter.Seq2[string, uint64] {
	return func(yield func(reason string, n uint64) bool) {
		for i, n := range d.counts() {
			if !yield(dropReasons[i], *n) {
				return
			}
		}
	}
}

// Total returns the sum of all counts.
func (d Drops) Total() (sum uint64) {
	for _, n := range d.counts() {
		sum += *n
	}
	return sum
}

// Plus returns the sums by reason.
func (d Drops) Plus(o Drops) Drops {
	add := o.counts()
	for i, n := range d.counts() {
		*n += *add[i]
	}
	return d
}

// rttBounds are the upper bounds of the buckets of an [RTTHistogram] but the last.
var rttBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	35 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// RTTHistogram is a histogram of measured round-trip times. Each end measures about once a second.
type RTTHistogram struct {
	Counts [len(rttBounds) + 1]uint64
	Sum    time.Duration
}

// Count returns the number of measurements.
func (h RTTHistogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Buckets iterates over the upper bounds of the buckets, in ascending order, and the number of
// measurements in each. The last bound is the maximum duration.
func (h RTTHistogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(bound time.Duration, n uint64) bool) {
		for i, n := range h.Counts {
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

// Plus returns the sum of both histograms.
func (h RTTHistogram) Plus(o RTTHistogram) RTTHistogram {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
	return h
}
