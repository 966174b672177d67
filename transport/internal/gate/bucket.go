package gate

import "time"

// Rate is how often something may happen: so many times a second, and a burst of so many at once.
type Rate struct {
	interval, depth time.Duration
}

// PerSecond returns a rate. Both numbers are at least 1.
func PerSecond(n, burst int) Rate {
	interval := time.Second / time.Duration(n)
	return Rate{interval: interval, depth: interval * time.Duration(burst-1)}
}

// Bucket counts for a [Rate]. It is 8 bytes; the zero value is full. Its time is a duration since any start,
// not negative, the same for all calls.
type Bucket struct {
	empty time.Duration // when the last of what was taken would have come at the even rate
}

// Take takes one if there is one.
func (b *Bucket) Take(now time.Duration, r Rate) bool {
	at := max(b.empty, now)
	if at-now > r.depth {
		return false
	}
	b.empty = at + r.interval
	return true
}
