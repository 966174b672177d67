package snapshot

import (
	"cmp"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// changedProb is the constant probability that the physics differ from those of the baseline.
var changedProb = rangecoder.Prob{P: 1 << 9}

// codePhysics codes the physics of cur.
func (pc *payloadCodec) codePhysics(cur *Set) {
	base, to := &pc.refs.base.physics, cur.physics
	p := changedProb
	if pc.schema.anchor < 0 || !pc.Bit(&p, to != *base) {
		pc.storePhysics(cur, base)
		return
	}
	for k := range to.size {
		s, from := &to.size[k], &base.size[k]
		s.floor = pc.physicsNumber(s.floor, from.floor, -maxFloor, maxFloor)
		s.half = pc.physicsNumber(s.half, from.half, 0, maxHalf)
	}
	to.contact = pc.physicsNumber(to.contact, base.contact, 0, maxContact)
	pc.storePhysics(cur, &to)
}

// storePhysics stores decoded physics. An encoder does not write, because other encoders may read
// the set.
func (pc *payloadCodec) storePhysics(cur *Set, p *physics) {
	if pc.Decoding {
		cur.physics = *p
	}
}

// physicsNumber codes v as its difference from another number, both from lo to hi. The difference
// has at most 32 bits, so that no sum overflows.
func (pc *payloadCodec) physicsNumber(v, from, lo, hi int64) int64 {
	d := v - from
	u := pc.count(pc.schema.layout.physics, physicsLevel, uint64(d<<1^d>>63))
	v = from + (int64(u>>1) ^ -int64(u&1))
	pc.Bad = pc.Bad || v < lo || v > hi
	return fixed.Clamp(v, lo, hi)
}

// loadPhysics loads the physics of cur. An axis whose size is unknown has no ground. But if all
// sizes are unknown, the ground is at the position of the lowest object.
func (pc *payloadCodec) loadPhysics(cur *Set) {
	pc.physics = cur.physics
	low := [3]int64{-noGround, -noGround, -noGround}
	if pc.schema.anchor >= 0 && pc.physics.size == [3]size{} {
		low = pc.refs.base.lowest()
	}
	for k := range pc.physics.size {
		s := &pc.physics.size[k]
		if s.half == 0 {
			s.half, s.floor = unknownHalf, low[k]<<floorBits
		}
		pc.lowest[k] = s.floor
	}
	pc.contactRange = cmp.Or(pc.physics.contact, unknownContact)
}
