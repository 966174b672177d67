package rpcdelta

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// linkConfig describes one direction of a network. Times are in frames.
type linkConfig struct {
	Delay, Jitter   int
	Loss, Duplicate float64
	Burst           float64 // mean length of a loss burst; up to 1: independent losses
}

// link simulates a network in virtual time, from a seed. As a transport must, it drops packets that
// were sent 64 or more frames before the newest that arrived.
type link struct {
	linkConfig
	frames uint64 // maximum number of new frames in a packet
	rng    *rand.Rand
	down   bool // nothing passes
	bad    bool // in a burst of losses
	sent   uint64
	newest uint64 // packets up to the newest that arrived
	queue  []packet
}

type packet struct {
	at     int
	order  uint64 // random, for those that arrive together
	number uint64 // how many were sent before
	b      []byte
}

func newLink(c linkConfig, seed, stream uint64) *link {
	return &link{linkConfig: c, frames: 1, rng: rand.New(rand.NewPCG(seed, stream))}
}

func (l *link) send(now int, b []byte) {
	number := l.sent
	l.sent++
	if l.lost() || l.down {
		return
	}
	l.put(now, number, b)
	if l.rng.Float64() < l.Duplicate {
		l.put(now, number, b)
	}
}

func (l *link) put(now int, number uint64, b []byte) {
	at := now + l.Delay
	if l.Jitter > 0 {
		at += l.rng.IntN(l.Jitter + 1)
	}
	l.queue = append(l.queue, packet{at, l.rng.Uint64(), number, slices.Clone(b)})
}

func (l *link) lost() bool {
	if l.Burst <= 1 {
		return l.rng.Float64() < l.Loss
	}
	if l.bad {
		l.bad = l.rng.Float64() >= 1/l.Burst
	} else {
		l.bad = l.rng.Float64() < l.Loss/(1-l.Loss)/l.Burst
	}
	return l.bad
}

// receive returns the packets that arrive at a time: in the order of sending if the link has no
// jitter, in random order otherwise.
func (l *link) receive(now int) (arrived []packet) {
	l.queue = slices.DeleteFunc(l.queue, func(p packet) bool {
		if p.at <= now {
			arrived = append(arrived, p)
		}
		return p.at <= now
	})
	slices.SortStableFunc(arrived, func(a, b packet) int {
		if a.at != b.at || l.Jitter == 0 {
			return a.at - b.at
		}
		return cmp.Compare(a.order, b.order)
	})
	return slices.DeleteFunc(arrived, func(p packet) bool {
		if p.number < l.newest && (l.newest-1-p.number)*l.frames >= 64 {
			return true
		}
		l.newest = max(l.newest, p.number+1)
		return false
	})
}
