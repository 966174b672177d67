package client

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

const (
	// budgetWindow is the time over which the rate is measured: at 15 datagrams a
	// second one more or less is 7 %.
	budgetWindow = time.Second
	// budgetLevels is the highest level: each lowers the rate of the one before.
	// The first take redundancy away, the others put more frames into a datagram.
	budgetLevels = rpcdelta.MaxRedundancy + MaxSendEvery - 1
	// budgetRoom is the share of the budget that the level below may take for the
	// controller to go there.
	budgetRoom = 0.9
	// leastCalm is for how many windows in a row that has to be so, at first.
	// Whenever it was wrong within soon windows it doubles, up to mostCalm.
	leastCalm = 3
	mostCalm  = 60
	soon      = 5
)

// budget keeps a connection's rate below a limit. It is a state machine without
// a clock, not safe for concurrent use. The zero value has no limit.
type budget struct {
	limit float64 // bits a second; 0: none
	level int

	begun  time.Time // of the window
	sent   traffic   // until then
	rate   float64   // of the last window
	around float64   // the part of it that headers of datagrams took
	over   uint64    // bits beyond the limit

	calm, needed int // windows in a row with room for the level below; how many it takes
	trial        int // windows at a level that the controller went down to; 0: it did not
}

// traffic is how many bits were sent so far, and how many of them as headers of
// datagrams.
type traffic struct{ bits, around uint64 }

// limits is what an RPC may do.
type limits struct {
	redundancy int // older payloads that ride along, at most
	every      int // frames a payload of adaptive RPCs, at least
}

func (b *budget) limits() limits {
	return limits{
		redundancy: max(rpcdelta.MaxRedundancy-b.level, 0),
		every:      1 + max(b.level-rpcdelta.MaxRedundancy, 0),
	}
}

// gain is how much the rate can fall at most from the level below to this one, and
// fixed the part of it that stays. One older payload fewer leaves the headers of
// datagrams as they are; fewer datagrams may change all.
func (b *budget) gain(level int) (gain, fixed float64) {
	if n := level - rpcdelta.MaxRedundancy; n > 0 {
		return float64(n+1) / float64(n), 0
	}
	copies := float64(rpcdelta.MaxRedundancy - level + 1)
	return (copies + 1) / copies, b.around
}

// below is what the rate may be at the level below.
func (b *budget) below() float64 {
	gain, fixed := b.gain(b.level)
	return fixed + (b.rate-fixed)*gain
}

// due says whether a window is over, so that step has something to do.
func (b *budget) due(now time.Time) bool { return b.limit > 0 && now.Sub(b.begun) >= budgetWindow }

// next gives when step has something to do; zero: never.
func (b *budget) next() time.Time {
	if b.limit == 0 {
		return time.Time{}
	}
	return b.begun.Add(budgetWindow)
}

// step takes what was sent so far, and the largest redundancy that an RPC has now. It
// says whether the limits have changed.
func (b *budget) step(now time.Time, sent traffic, redundancy int) bool {
	if !b.due(now) {
		return false
	}
	took, bits, around := now.Sub(b.begun), float64(sent.bits-b.sent.bits), float64(sent.around-b.sent.around)
	b.begun, b.sent = now, sent
	if took >= 2*budgetWindow {
		return false // the first one, or there was no connection
	}
	b.rate, b.around = bits/took.Seconds(), around/took.Seconds()
	before := b.level
	if b.trial > 0 {
		b.trial++
	}
	switch {
	case b.rate > b.limit:
		b.over += uint64((b.rate - b.limit) * took.Seconds())
		b.lower(redundancy)
	case b.level > 0 && b.below() <= budgetRoom*b.limit:
		b.rest()
	default:
		b.calm = 0
	}
	return b.level != before
}

// lower goes up as many levels as it takes at least, from the first that has any
// effect.
func (b *budget) lower(redundancy int) {
	b.calm = 0
	if b.level == budgetLevels {
		return
	}
	if b.trial > 0 && b.trial <= soon {
		b.needed = min(2*b.needed, mostCalm)
	}
	b.trial = 0
	b.level = max(b.level, rpcdelta.MaxRedundancy-redundancy)
	for rate := b.rate; rate > b.limit && b.level < budgetLevels; b.level++ {
		gain, fixed := b.gain(b.level + 1)
		rate = fixed + (rate-fixed)/gain
	}
}

// rest goes to the level below when there was room for long enough.
func (b *budget) rest() {
	if b.trial > mostCalm {
		b.needed, b.trial = leastCalm, 0
	}
	b.needed = max(b.needed, leastCalm)
	if b.calm++; b.calm >= b.needed {
		b.level--
		b.calm, b.trial = 0, 1
	}
}
