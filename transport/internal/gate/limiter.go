package gate

import (
	"hash/maphash"
	"net/netip"
	"time"
)

const (
	rows, slotBits = 4, 12 // 128 KiB
	rest           = 10 * time.Second
)

// limiter limits handshakes: of each network of senders, and of all together. It never grows: a network has a
// slot in each row, by its hash, which nobody outside can foretell. Others may use one of its slots, but
// hardly all, and the one that is used least speaks for it.
//
// Half of what all may have together is for networks that had none lately, so that a few of them that ask for
// more than there is do not keep others waiting.
type limiter struct {
	seed             maphash.Seed
	each, half       Rate
	networks         [rows][1 << slotBits]Bucket
	common, reserved Bucket // a half each
}

func newLimiter(each, all Rate) *limiter {
	return &limiter{seed: maphash.MakeSeed(), each: each, half: all.half()}
}

// take reports whether one more handshake may come from that address. This machine's own are limited as a
// whole only.
func (l *limiter) take(now time.Duration, from netip.Addr) bool {
	if from.IsLoopback() {
		return l.takeShare(now, true)
	}
	hash := maphash.Comparable(l.seed, network(from))
	var room, rested bool
	for row := range rows {
		b := l.slot(row, hash)
		room = room || b.has(now, l.each)
		rested = rested || b.rested(now, rest)
	}
	// What is refused for others' sake must not count against the network.
	if !room || !l.takeShare(now, rested) {
		return false
	}
	for row := range rows {
		l.slot(row, hash).Take(now, l.each)
	}
	return true
}

// slot returns a network's bucket in a row.
func (l *limiter) slot(row int, hash uint64) *Bucket {
	return &l.networks[row][hash>>(slotBits*row)&(1<<slotBits-1)]
}

// takeShare takes one of what all have together.
func (l *limiter) takeShare(now time.Duration, rested bool) bool {
	return rested && l.reserved.Take(now, l.half) || l.common.Take(now, l.half)
}

// SameNetwork reports whether one sender can easily have both addresses.
func SameNetwork(a, b netip.Addr) bool { return network(a) == network(b) }

// network returns what an address has in common with those that one sender can easily have too.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits) // the error is for more bits than the address has
	return p
}
