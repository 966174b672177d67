package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/entropy"
	"github.com/uplink-rpc/uplink/internal/fixed"
)

const (
	// maxTick bounds ticks, so that their differences do not run over.
	maxTick = 1 << 53
	// maxJump is how far a tick may be from where it is expected before a packet has to refer to none.
	maxJump = 1 << 30
	// hashed is of how many packets one has a hash.
	checkInterval = 64
	// slowest is after how many decisions chances no longer adapt slower. With fewer, what moves takes more bits; with more,
	// what rests does.
	adaptLimit = 45
)

// walk codes a packet in either direction.
type payloadCodec struct {
	entropy.Coder
	plan           *plan
	store          *baselineStore
	out            *packet // what is coded: its state adapts
	keyframe       bool    // refers to none
	view           view
	base           *packet   // the newest of the view
	bases          []*record // by ascending id
	neighbors      neighborContext
	object         objectContext
	viewerPosition [3]int64 // the viewer's place
	hasViewer      bool     // it is known
	bad            bool     // what was decoded is out of bounds
	older          []byte   // inputs of the tick before, while they are coded
}

func (pc *payloadCodec) init(b *baselineStore, decoding bool) {
	pc.Coder = entropy.NewCoder(adaptLimit, decoding)
	pc.plan, pc.store = b.plan, b
	pc.neighbors.init(len(b.plan.fields))
}

// begin makes the state that of the base, or, where there is none, prior.
func (pc *payloadCodec) begin(prior *modelState) {
	pc.bad, pc.hasViewer, pc.neighbors.n = false, false, 0
	if !pc.keyframe {
		prior = pc.base.state
	}
	pc.out.state.copyFrom(prior)
}

// recent codes which of the last packets before the newest are held.
func (pc *payloadCodec) codeRecent(said uint32) (got uint32) {
	s, before := pc.out.state, 1
	for i := range reorderLimit - 1 {
		b := pc.Bit(&s.held[before], said>>i&1 != 0)
		before = 0
		if b {
			got |= 1 << i
			before = 1
		}
	}
	return got
}

// tick codes the tick, told from where it is expected.
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

// agree codes a hash, and says whether both have the same.
func (pc *payloadCodec) checkHash() bool {
	if pc.keyframe || pc.out.seq%checkInterval != 0 {
		return true
	}
	h := uint64(pc.out.state.hash(pc.bases))
	return pc.Raw(h, 16) == h
}

// viewer codes from which object places are told.
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

// member codes whether an object that has a baseline is updated.
func (pc *payloadCodec) codeMember(base *record, is bool) bool {
	ctx := 0
	if base.rests {
		ctx = 1
	}
	return pc.Bit(&pc.out.state.member[ctx][pc.age(base.seq)], is)
}

// age is the length of the number of packets since one.
func (pc *payloadCodec) age(seq uint64) int {
	return min(bits.Len64(pc.view.newest-seq), ageContexts-1)
}

// stranger codes the id of an object that has no baseline, told from the one before.
func (pc *payloadCodec) codeNewID(id, before int64) int64 {
	return before + 1 + pc.rare(rareNewID, id-before-1)
}

// members are the objects that may have a baseline.
func (pc *payloadCodec) members() []*record {
	if pc.keyframe {
		return nil
	}
	return pc.bases
}

// find gives the place of an id among bases, and whether it is there.
func (pc *payloadCodec) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(pc.members(), id, func(r *record, id uint16) int { return int(r.object.ID) - int(id) })
}

// sight notes where the viewer's object is.
func (pc *payloadCodec) setViewerPosition(row []int32) {
	pc.viewerPosition, pc.hasViewer = pc.position(row), pc.plan.anchor >= 0
}

// fresh adds a record to the packet that is coded.
func (pc *payloadCodec) newRecord(id uint16) *record {
	r := pc.store.pool.take(pc.plan)
	r.object.ID, r.seq, r.tick = id, pc.out.seq, pc.out.tick
	pc.out.updates = append(pc.out.updates, r)
	return r
}

// sort puts the packet's updates in order.
func (p *packet) sort() {
	slices.SortFunc(p.updates, func(a, b *record) int { return int(a.object.ID) - int(b.object.ID) })
}
