package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	// maxTick is the maximum magnitude of a tick, so that their differences do not overflow.
	maxTick = 1 << 53
	// maxJump is the maximum difference of a tick from the expected one, except in keyframes.
	maxJump = 1 << 30
	// checkInterval is the number of packets per divergence check.
	checkInterval = 64
	// adaptLimit is the number of decisions after which probabilities adapt at a constant rate. A
	// lower limit costs bits for objects at rest, a higher one for those that move.
	adaptLimit = 45
)

func validTick(tick int64) bool { return tick >= -maxTick && tick <= maxTick }

// payloadCodec encodes or decodes the coded part of a packet. The same code does both, see
// [rangecoder.Coder]: a sender passes values in, and a receiver gets them.
type payloadCodec struct {
	rangecoder.Coder
	plan           *plan
	pool           *pool      // at the receiver
	sent           *sentStore // at the sender
	out            *packet    // the packet that is coded
	keyframe       bool       // it has no baselines
	view           view
	base           *packet   // newest packet of the view
	bases          []update  // baselines by ascending id
	records        []*record // of bases, at the receiver
	object         objectContext
	viewerPosition [3]int64
	hasViewer      bool   // viewerPosition is known
	older          []byte // inputs of the previous tick, while inputs are coded
}

func (pc *payloadCodec) init(p *plan, decoding bool) {
	pc.Coder = rangecoder.NewCoder(adaptLimit, decoding)
	pc.plan = p
	pc.object.init(p)
}

// begin copies the models of the base packet, or prior for a keyframe, to the coded packet.
func (pc *payloadCodec) begin(prior *modelState) {
	pc.Bad, pc.hasViewer = false, false
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
	return validTick(pc.out.tick)
}

// checkHash codes the hash of the divergence check if due, and reports whether both ends agree.
func (pc *payloadCodec) checkHash() bool {
	if pc.keyframe || pc.out.seq%checkInterval != 0 {
		return true
	}
	h := uint64(pc.hash())
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
func (pc *payloadCodec) codeMember(base *update, is bool) bool {
	return pc.Bit(&pc.out.state.member[pc.memberContext(base)], is)
}

// memberContext returns the context of codeMember.
func (pc *payloadCodec) memberContext(base *update) uint8 {
	ctx := pc.age(base.seq)
	if base.rests {
		ctx += ageContexts
	}
	return ctx
}

// omit encodes that objects with baselines are not updated. Nothing is coded for the viewer object.
func (pc *payloadCodec) omit(bases []update, viewer int) {
	for len(bases) > 0 {
		var contexts [64]uint8
		n, of := 0, bases[:min(len(bases), len(contexts))]
		for i := range of {
			contexts[n&63] = pc.memberContext(&of[i])
			if int(of[i].object.ID) != viewer {
				n++
			}
		}
		pc.Falses(pc.out.state.member[:], contexts[:n])
		bases = bases[len(of):]
	}
}

// age returns a context for the age of packet seq, in packets: its length in bits.
func (pc *payloadCodec) age(seq uint32) uint8 {
	return ages[min(uint32(pc.view.newest)-seq, uint32(len(ages)-1))]
}

// ages are the lengths of numbers in bits, up to the first that is ageContexts-1.
var ages = func() (a [1<<(ageContexts-2) + 1]uint8) {
	for i := range a {
		a[i] = uint8(bits.Len(uint(i)))
	}
	return a
}()

// codeNewID codes the id of an object without a baseline as the difference from the previous one.
func (pc *payloadCodec) codeNewID(id, before int64) int64 {
	return before + 1 + pc.rare(rareNewID, id-before-1)
}

func (pc *payloadCodec) members() []update {
	if pc.keyframe {
		return nil
	}
	return pc.bases
}

// find returns the index of the baseline of an object among the members, or -1.
func (pc *payloadCodec) find(id uint16) int32 {
	at, ok := slices.BinarySearchFunc(pc.members(), id, compareID)
	if !ok {
		return -1
	}
	return int32(at)
}

// baseline returns a baseline, at the sender until the next call.
func (pc *payloadCodec) baseline(at int32) *record {
	if pc.sent == nil {
		return pc.records[at]
	}
	pc.sent.load(at, &pc.object.loaded)
	return &pc.object.loaded
}

// unpack returns the row of a baseline, until the next update is coded.
func (pc *payloadCodec) unpack(at int32) []int32 {
	pc.plan.packing.Unpack(pc.object.was, pc.plan.wordsOf(pc.baseline(at)))
	return pc.object.was
}

func (pc *payloadCodec) setViewerPosition(row []int32) {
	pc.viewerPosition, pc.hasViewer = pc.position(row), pc.plan.anchor >= 0
}

// newRecord returns a record of the coded packet: at the sender until the next call, for
// sentStore.
func (pc *payloadCodec) newRecord(id uint16) *record {
	if pc.sent != nil {
		pc.sent.add(pc.out, id, &pc.object.added)
		return &pc.object.added
	}
	r := pc.pool.take(pc.plan)
	r.object.ID, r.seq, r.tick = id, uint32(pc.out.seq), uint32(pc.out.tick)
	pc.out.updates = append(pc.out.updates, r)
	return r
}

func (p *packet) sort() {
	slices.SortFunc(p.updates, func(a, b *record) int { return int(a.object.ID) - int(b.object.ID) })
}

// rare codes a number that is 0 most of the time.
func (pc *payloadCodec) rare(of int, v int64) int64 {
	if !pc.Bit(&pc.out.state.rare[of], v != 0) {
		return 0
	}
	return pc.number(pc.plan.rare[of], v)
}

// objectContext holds the values that the codec computes while it codes the fields of an object.
type objectContext struct {
	to                *record
	learned           []uint64 // misses of the baseline
	missed            []uint64 // misses of to
	trends, newTrends []uint64
	now, was          []int32 // rows of to and of the baseline; now is not written by an encoder
	decoded           []int32 // now, of a decoder
	elapsed           int64   // ticks since the baseline
	scales            scaleContext
	misses            []int64 // logarithms of the fields' residuals
	loaded, added     record  // of a sender
}

func (o *objectContext) init(p *plan) {
	o.decoded, o.was, o.misses = make([]int32, p.ints), make([]int32, p.ints), make([]int64, len(p.fields))
}

// A record keeps the logarithm of a field's residual in 1/8.
const missShift = 5

// miss returns the logarithm of the residual of a field in the baseline, Q8.
func (o *objectContext) miss(field int) int64 {
	return int64(o.learned[field/8]>>(8*(field&7))&255) << missShift
}

// setMissed stores the residual of a field.
func (o *objectContext) setMissed(field int) {
	v := fixed.Log2(o.scales.missed)
	o.misses[field] = v
	m, at := &o.missed[field/8], 8*(field&7)
	*m = *m&^(255<<at) | uint64(fixed.Clamp(v>>missShift, 0, 255))<<at
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
