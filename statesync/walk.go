package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	// maxTick bounds ticks, so that their differences do not run over.
	maxTick = 1 << 53
	// maxJump is how far a tick may be from where it is expected before a packet has to refer to none.
	maxJump = 1 << 30
	// hashed is of how many packets one has a hash.
	hashed = 64
	// slowest is after how many decisions chances no longer adapt slower. With fewer, what moves takes more bits; with more,
	// what rests does.
	slowest = 45
)

// walk codes a packet in either direction.
type walk struct {
	rangecoder.Coder
	plan   *plan
	book   *book
	out    *packet // what is coded: its state adapts
	root   bool    // refers to none
	view   view
	base   *packet   // the newest of the view
	bases  []*record // by ascending id
	around around
	object object
	eye    [3]int64 // the viewer's place
	sees   bool     // it is known
	bad    bool     // what was decoded is out of bounds
	older  []byte   // inputs of the tick before, while they are coded
}

func (w *walk) init(b *book) {
	w.plan, w.book = b.plan, b
	w.around.init(len(b.plan.fields))
}

// begin makes the state that of the base, or, where there is none, prior.
func (w *walk) begin(prior *state) {
	w.bad, w.sees, w.around.n = false, false, 0
	if !w.root {
		prior = w.base.state
	}
	w.out.state.copyFrom(prior)
}

// recent codes which of the last packets before the newest are held.
func (w *walk) recent(said uint32) (got uint32) {
	s, before := w.out.state, 1
	for i := range settled - 1 {
		b := w.Bit(&s.held[before], said>>i&1 != 0)
		before = 0
		if b {
			got |= 1 << i
			before = 1
		}
	}
	return got
}

// tick codes the tick, told from where it is expected.
func (w *walk) tick() bool {
	if w.root {
		return true
	}
	s, p := w.out.state, int64(w.out.seq-w.base.seq)
	expect := w.base.tick + p*s.pace
	w.out.tick = expect + w.rare(rareTick, w.out.tick-expect)
	s.pace = fixed.Clamp((w.out.tick-w.base.tick)/p, 0, 1<<20)
	return fixed.Abs(w.out.tick) <= maxTick
}

// agree codes a hash, and says whether both have the same.
func (w *walk) agree() bool {
	if w.root || w.out.seq%hashed != 0 {
		return true
	}
	h := uint64(w.out.state.hash(w.bases))
	return w.Raw(h, 16) == h
}

// viewer codes from which object places are told.
func (w *walk) viewer(id uint16, has bool) (uint16, bool) {
	s := w.out.state
	if !w.Bit(&s.viewer[0], has) {
		return 0, false
	}
	if !w.Bit(&s.viewer[1], id == s.view) {
		s.view = uint16(w.Raw(uint64(id), 16))
	}
	return s.view, true
}

// member codes whether an object that has a baseline is updated.
func (w *walk) member(base *record, is bool) bool {
	ctx := 0
	if base.rests {
		ctx = 1
	}
	return w.Bit(&w.out.state.member[ctx][w.age(base.seq)], is)
}

// age is the length of the number of packets since one.
func (w *walk) age(seq uint64) int {
	return min(bits.Len64(w.view.newest-seq), ages-1)
}

// stranger codes the id of an object that has no baseline, told from the one before.
func (w *walk) stranger(id, before int64) int64 {
	return before + 1 + w.rare(rareStranger, id-before-1)
}

// members are the objects that may have a baseline.
func (w *walk) members() []*record {
	if w.root {
		return nil
	}
	return w.bases
}

// find gives the place of an id among bases, and whether it is there.
func (w *walk) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(w.members(), id, func(r *record, id uint16) int { return int(r.object.ID) - int(id) })
}

// sight notes where the viewer's object is.
func (w *walk) sight(row []int32) {
	w.eye, w.sees = w.place(row), w.plan.anchor >= 0
}

// fresh adds a record to the packet that is coded.
func (w *walk) fresh(id uint16) *record {
	r := w.book.pool.take(w.plan)
	r.object.ID, r.seq, r.tick = id, w.out.seq, w.out.tick
	w.out.updates = append(w.out.updates, r)
	return r
}

// sort puts the packet's updates in order.
func (p *packet) sort() {
	slices.SortFunc(p.updates, func(a, b *record) int { return int(a.object.ID) - int(b.object.ID) })
}
