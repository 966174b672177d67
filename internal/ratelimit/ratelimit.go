// Package ratelimit implements a token bucket.
package ratelimit

import "time"

// Rate is a rate limit: PerSecond on average, and at most Burst at once.
type Rate struct{ PerSecond, Burst float64 }

// Bucket is the use of a [Rate] by one source. The zero value is full. Times are durations since a
// start that is the same for all calls. A time before that of the last call refills nothing. The
// rate may differ between calls. A Bucket does not allocate and is not safe for concurrent use.
type Bucket struct {
	used float64       // tokens that are not refilled yet
	at   time.Duration // time of the last call of Take
}

// Take removes n tokens if that many are available at that time, and reports whether it did.
func (b *Bucket) Take(now time.Duration, r Rate, n float64) bool {
	b.used, b.at = b.usedAt(now, r), max(b.at, now)
	if b.used+n > r.Burst {
		return false
	}
	b.used += n
	return true
}

// Spend removes n tokens, also if fewer are available: none are then until the rest is refilled.
func (b *Bucket) Spend(now time.Duration, r Rate, n float64) {
	b.used, b.at = b.usedAt(now, r)+n, max(b.at, now)
}

// Refund returns n tokens that were taken.
func (b *Bucket) Refund(n float64) { b.used = max(b.used-n, 0) }

// Has reports whether there are n tokens at that time.
func (b *Bucket) Has(now time.Duration, r Rate, n float64) bool {
	return b.usedAt(now, r)+n <= r.Burst
}

// Used returns the number of tokens that are not refilled at that time.
func (b *Bucket) Used(now time.Duration, r Rate) float64 { return b.usedAt(now, r) }

// FullAt returns the time at which the bucket will be or was full again, or 0 if no token was ever
// removed.
func (b *Bucket) FullAt(r Rate) time.Duration {
	if b.used == 0 {
		return 0
	}
	return b.at + time.Duration(b.used/r.PerSecond*float64(time.Second))
}

func (b *Bucket) usedAt(now time.Duration, r Rate) float64 {
	passed := now - b.at
	if passed <= 0 {
		return b.used
	}
	return max(b.used-float64(passed)*(r.PerSecond*1e-9), 0)
}
