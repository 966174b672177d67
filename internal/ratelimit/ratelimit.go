// Package ratelimit implements a token bucket, which bounds how often something may happen.
package ratelimit

import "time"

// Rate is how much a [Bucket] lets through: PerSecond for ever, and up to Burst at
// once after a rest.
type Rate struct{ PerSecond, Burst float64 }

// Bucket is what one source has used of its [Rate]. The zero value has used
// nothing. The rate may be another one at each call. It allocates nothing and is
// not safe for concurrent use.
type Bucket struct {
	used float64       // tokens not yet filled up again
	at   time.Duration // of the last call
}

// Take takes n tokens if there are as many at that time, and says whether it did;
// otherwise it takes none. The time is since any moment, the same for all calls; one
// before the last call's fills nothing up.
func (b *Bucket) Take(now time.Duration, r Rate, n float64) bool {
	if passed := now - b.at; passed > 0 {
		b.used -= float64(passed) * (r.PerSecond * 1e-9)
		if b.used < 0 {
			b.used = 0
		}
		b.at = now
	}
	used := b.used + n
	if used > r.Burst {
		return false
	}
	b.used = used
	return true
}
