package gate

import (
	"hash/maphash"
	"net/netip"
	"time"
)

const slots = 4096 // 32 KiB

// limiter limits handshakes: of each network of senders, and of all together. Networks whose hashes, which
// nobody outside can foretell, fall together share a limit. It never grows.
type limiter struct {
	seed      maphash.Seed
	each, all Rate
	networks  [slots]Bucket
	total     Bucket
}

func newLimiter(each, all Rate) *limiter {
	return &limiter{seed: maphash.MakeSeed(), each: each, all: all}
}

// take reports whether one more handshake may come from that address. This machine's own are limited as a
// whole only.
func (l *limiter) take(now time.Duration, from netip.Addr) bool {
	if !from.IsLoopback() {
		slot := maphash.Comparable(l.seed, network(from)) % slots
		if !l.networks[slot].Take(now, l.each) {
			return false
		}
	}
	return l.total.Take(now, l.all)
}

// network returns what an address has in common with those that one sender can easily have too.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits) // the error is for more bits than the address has
	return p
}
