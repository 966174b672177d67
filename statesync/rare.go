package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
	"github.com/uplink-rpc/uplink/internal/fixed"
)

// Numbers of which a packet has few: each has lengths of its own, and the leading bits of those of fields.
const (
	rareTick     = iota // from where it is expected
	rareTicks           // of inputs
	rareBehind          // how far these are behind
	rareBytes           // of a tick's inputs
	rarePosition        // from the viewer's
	rareNewID           // id, from the one before
	rareNumbers
)

// rareLevels are the levels that they start from.
func (p *plan) rareLevels() [rareNumbers]int {
	l := [rareNumbers]int{rareTick: 1, rareTicks: 4, rareBehind: 0, rareBytes: 9, rareNewID: 12}
	if p.anchor >= 0 {
		f := &p.fields[p.anchor]
		l[rarePosition] = int(fixed.Clamp(3*int64(bits.Len32(uint32(f.Hi-f.Lo)))-16, 0, entropy.Levels-1)) // a 32nd of its bounds
	}
	return l
}

// rare codes a rare number.
func (pc *payloadCodec) rare(of int, v int64) int64 {
	s := pc.out.state
	return pc.Rare(&s.numbers, &s.rare[of], pc.plan.rare[of], rareSigns+of, v)
}
