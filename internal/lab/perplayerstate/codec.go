package perplayerstate

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	// maxTick bounds ticks, so that their differences do not overflow.
	maxTick = 1 << 53
	// maxJump is the maximum difference of a tick from the expected one, except in keyframes.
	maxJump = 1 << 30
	// checkInterval is the number of packets per divergence check.
	checkInterval = 64
	// adaptLimit is the number of decisions after which probabilities adapt at a constant rate. A
	// lower limit costs bits for objects at rest, a higher one for those that move.
	adaptLimit = 45
)

// payloadCodec encodes or decodes the coded part of a packet. The same code does both, see
// [rangecoder.Coder]: a sender passes values in, and a receiver gets them.
type payloadCodec struct {
	rangecoder.Coder
	plan           *plan
	store          *baselineStore
	out            *packet // the packet that is coded
	keyframe       bool    // it has no baselines
	view           view
	base           *packet   // newest packet of the view
	bases          []*record // baselines by ascending id
	neighbors      neighborContext
	object         objectContext
	viewerPosition [3]int64
	hasViewer      bool   // viewerPosition is known
	older          []byte // inputs of the previous tick, while inputs are coded
}

func (pc *payloadCodec) init(b *baselineStore, decoding bool) {
	pc.Coder = rangecoder.NewCoder(adaptLimit, decoding)
	pc.plan, pc.store = b.plan, b
	pc.neighbors.init(len(b.plan.fields))
}

// begin copies the models of the base packet, or prior for a keyframe, to the coded packet.
func (pc *payloadCodec) begin(prior *modelState) {
	pc.Bad, pc.hasViewer, pc.neighbors.n = false, false, 0
	if !pc.keyframe {
		prior = pc.base.state
	}
	pc.out.state.copyFrom(prior)
}

// codeRecent codes which of the last packets before the base packet were decoded.
func (pc *payloadCodec) codeRecent(recent uint32) (got uint32) {
	s, before := pc.out.state, 1
	for i := range reorderLimit - 1 {
		b := pc.Bit(&s.held[before], recent>>i&1 != 0)
		before = 0
		if b {
			got |= 1 << i
			before = 1
		}
	}
	return got
}

// codeTick codes the tick as the difference from the expected one.
func (pc *payloadCodec) codeTick() bool {
	if pc.keyframe {
		return true
	}
	s, p := pc.out.state, int64(pc.out.seq-pc.base.seq)
	expect := pc.base.tick + p*s.pace
	pc.out.tick = expect + pc.rare(rareTick, pc.out.tick-expect)
	s.pace = fixed.Clamp((pc.out.tick-pc.base.tick)/p, 0, 1<<20)
	return fixed.Abs(pc.out.tick) <= maxTick
}

// checkHash codes the hash of the divergence check if due, and reports whether both ends agree.
func (pc *payloadCodec) checkHash() bool {
	if pc.keyframe || pc.out.seq%checkInterval != 0 {
		return true
	}
	h := uint64(pc.out.state.hash(pc.bases))
	return pc.Raw(h, 16) == h
}

func (pc *payloadCodec) codeViewerID(id uint16, has bool) (uint16, bool) {
	s := pc.out.state
	if !pc.Bit(&s.viewer[0], has) {
		return 0, false
	}
	if !pc.Bit(&s.viewer[1], id == s.view) {
		s.view = uint16(pc.Raw(uint64(id), 16))
	}
	return s.view, true
}

// codeMember codes whether an object that has a baseline is updated.
func (pc *payloadCodec) codeMember(base *record, is bool) {
	ctx := 0
	if base.rests {
		ctx = 1
	}
	pc.Bit(&pc.out.state.member[ctx][pc.age(base.seq)], is)
}

// age returns a context for the age of packet seq, in packets.
func (pc *payloadCodec) age(seq uint64) int {
	return min(bits.Len64(pc.view.newest-seq), ageContexts-1)
}

// codeNewID codes the id of an object without a baseline as the difference from the previous one.
func (pc *payloadCodec) codeNewID(id, before int64) int64 {
	return before + 1 + pc.rare(rareNewID, id-before-1)
}

func (pc *payloadCodec) members() []*record {
	if pc.keyframe {
		return nil
	}
	return pc.bases
}

func (pc *payloadCodec) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(pc.members(), id, func(r *record, id uint16) int { return int(r.object.ID) - int(id) })
}

func (pc *payloadCodec) setViewerPosition(row []int32) {
	pc.viewerPosition, pc.hasViewer = pc.position(row), pc.plan.anchor >= 0
}

func (pc *payloadCodec) newRecord(id uint16) *record {
	r := pc.store.pool.take(pc.plan)
	r.object.ID, r.seq, r.tick = id, pc.out.seq, pc.out.tick
	pc.out.updates = append(pc.out.updates, r)
	return r
}

func (p *packet) sort() {
	slices.SortFunc(p.updates, func(a, b *record) int { return int(a.object.ID) - int(b.object.ID) })
}

func (pc *payloadCodec) rare(of int, v int64) int64 {
	s := pc.out.state
	return pc.IntWith(&s.numbers, &s.rare[of], pc.plan.rare[of], rareSigns+of, v)
}

// objectContext holds the values that the codec computes while it codes the fields of an object.
type objectContext struct {
	to, base   *record
	now, was   []int32 // their rows
	learned    []int32 // of the baseline
	elapsed    int64   // ticks since the baseline
	here, near int     // indices in neighborContext; near is -1 if there is none
}

func (pc *payloadCodec) position(row []int32) (at [3]int64) {
	if pc.plan.anchor < 0 {
		return at
	}
	f := &pc.plan.fields[pc.plan.anchor]
	for k := range f.N {
		at[k] = int64(row[f.at+k])
	}
	return at
}
