package admission

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
)

const (
	rows, slotBits = 4, 12 // 256 KiB
	// restPeriod is the time without a handshake after which a network may use the reserved half.
	restPeriod = 10 * time.Second
)

// limiter limits the handshakes of each network of senders, and of all together. Its size is
// constant: a network has one slot per row, selected by a secret hash. Other networks may share
// some of its slots, but hardly all, and only the least used slot counts.
//
// Half of the total is reserved for networks without recent handshakes, so that a few networks with
// many handshakes do not delay others.
type limiter struct {
	seed             maphash.Seed
	perNetwork, half ratelimit.Rate
	networks         [rows][1 << slotBits]ratelimit.Bucket
	common, reserved ratelimit.Bucket // half of the total each
}

func newLimiter(perNetwork, total ratelimit.Rate) *limiter {
	half := ratelimit.Rate{PerSecond: total.PerSecond / 2, Burst: max(total.Burst/2, 1)}
	return &limiter{seed: maphash.MakeSeed(), perNetwork: perNetwork, half: half}
}

// allow reports whether a handshake with an address is permitted, and counts it. For loopback
// addresses only the total is limited.
func (l *limiter) allow(now time.Duration, from netip.Addr) bool {
	if from.IsLoopback() {
		return l.allowTotal(now, true)
	}
	hash := maphash.Comparable(l.seed, network(from))
	var room, rested bool
	for row := range rows {
		b := l.slot(row, hash)
		room = room || b.Has(now, l.perNetwork, 1)
		full := b.FullAt(l.perNetwork)
		rested = rested || full == 0 || now-full >= restPeriod
	}
	// A handshake that exceeds the total must not count against its network.
	if !room || !l.allowTotal(now, rested) {
		return false
	}
	for row := range rows {
		l.slot(row, hash).Take(now, l.perNetwork, 1)
	}
	return true
}

func (l *limiter) slot(row int, hash uint64) *ratelimit.Bucket {
	return &l.networks[row][hash>>(slotBits*row)&(1<<slotBits-1)]
}

func (l *limiter) allowTotal(now time.Duration, rested bool) bool {
	return rested && l.reserved.Take(now, l.half, 1) || l.common.Take(now, l.half, 1)
}

// SameNetwork reports whether both addresses belong to one network of senders.
func SameNetwork(a, b netip.Addr) bool { return network(a) == network(b) }

// network returns the prefix that all addresses of one sender typically share.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits) // fails only if the address has fewer bits
	return p
}
