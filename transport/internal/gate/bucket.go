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

// half returns a rate of half as many, and at least one at once.
func (r Rate) half() Rate {
	return Rate{interval: 2 * r.interval, depth: max(r.depth-r.interval, 0)}
}

// Bucket counts for a [Rate]. It is 8 bytes; the zero value is full. Its time is a duration since any start,
// not negative, the same for all calls.
type Bucket struct {
	empty time.Duration // when the last of what was taken would have come at the even rate
}

// Take takes one if there is one.
func (b *Bucket) Take(now time.Duration, r Rate) bool {
	if !b.has(now, r) {
		return false
	}
	b.empty = max(b.empty, now) + r.interval
	return true
}

// has reports whether there is one to take.
func (b *Bucket) has(now time.Duration, r Rate) bool { return b.empty-now <= r.depth }

// rested reports whether nothing was taken lately, or ever.
func (b *Bucket) rested(now, lately time.Duration) bool {
	return b.empty == 0 || now-b.empty >= lately
}
