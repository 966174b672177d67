package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Numbers of which a packet has few: each has lengths of its own, and the leading bits of those of fields.
const (
	rareTick     = iota // from where it is expected
	rareTicks           // of inputs
	rareBehind          // how far these are behind
	rareBytes           // of a tick's inputs
	rarePlace           // from the viewer's
	rareStranger        // id, from the one before
	rares
)

// rareLevels are the levels that they start from.
func (p *plan) rareLevels() [rares]int {
	l := [rares]int{rareTick: 1, rareTicks: 4, rareBehind: 0, rareBytes: 9, rareStranger: 12}
	if p.anchor >= 0 {
		f := &p.fields[p.anchor]
		l[rarePlace] = int(fixed.Clamp(3*int64(bits.Len32(uint32(f.Hi-f.Lo)))-16, 0, rangecoder.Levels-1)) // a 32nd of its bounds
	}
	return l
}

// rare codes a rare number.
func (w *walk) rare(of int, v int64) int64 {
	s := w.out.state
	return w.IntWith(&s.numbers, &s.rare[of], w.plan.rare[of], rareSigns+of, v)
}
