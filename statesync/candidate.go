package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// savepoint is the state before an object, to which the sender returns if the object does not fit.
type savepoint struct {
	set     bool
	enc     rangecoder.Encoder
	state   *modelState
	updates int
	size    int
	ctx     int
	next    int
}

// packetBuilder fills packets. It picks the first candidates that should fit by the sizes of their
// previous updates and codes them by id. If more or less space is left than expected, it drops the
// last ones or adds others.
type packetBuilder struct {
	list  []candidate
	at    []int32 // by baseline: index of the candidate + 1, or 0
	out   packet
	buf   []byte
	saved savepoint

	attempt     int
	limit       int   // of the coded part, in bits
	size        int   // of the coded part after the last update
	first       int   // the first candidate, which is reserved space, or -1
	tail        int   // candidates from here on are not picked
	count       int   // candidates picked or sent
	pending     int   // sum of the sizes of those picked
	needed      int   // sum of the sizes of those sent
	viewerCoded bool  // the update of the viewer object has been coded
	ctx         int   // context of modelState.more
	next        int   // the next baseline to code
	last        int64 // id of the last object without a baseline
}

// Attempts to fill a packet, in order.
const (
	optimistic     = iota // with savepoints near the end of the packet
	withSavepoints        // before each object
	firstAlone            // send the first candidate only
	attempts
)

const (
	// resendInterval is the number of packets after which a removal is sent again.
	resendInterval = 4
	// removalBits is the approximate size of a removal.
	removalBits = 12
)

// Sizes of updates are in 1/256 bit; stored ones are in units of 1/16 bit.
const (
	bit      = 256
	needUnit = 16
)

type candidateState uint8

const (
	waiting candidateState = iota
	picked                 // to be coded
	sent
	failed   // did not fit
	excluded // does not fit even alone
)

type candidate struct {
	at    int32 // index in the world's set, or -1: removed
	base  int32 // index among the baselines, or -1
	need  int32 // size of the update, estimated or actual
	id    uint16
	with  uint8 // 1 if there is a baseline
	state candidateState
}

// list starts the list of candidates: first the object with the highest sum, then removals, which
// may use half of the packet so that other objects continue when many are removed at once.
func (s *Sender) list() {
	c := &s.builder
	c.list = slices.Grow(c.list[:0], len(s.world.states))
	c.at = slices.Grow(c.at[:0], len(s.codec.bases))[:len(s.codec.bases)]
	clear(c.at)
	s.accumulator.Start()
	s.more()
	if s.present == len(s.store.live) {
		return
	}
	gone := 1 + min(maxUpdates, s.cfg.Budget*8/removalBits)/2
	kept, next, set := s.store.live[:0], 0, s.world.set
	for _, id := range s.store.live {
		for next < set.Len() && set.Object(next).ID < id {
			next++
		}
		if next < set.Len() && set.Object(next).ID == id {
			kept = append(kept, id)
			continue
		}
		st := s.store.objects.at(id)
		if st.based && st.base == 0 {
			st.sum, st.live = 0, false
			continue
		}
		kept = append(kept, id)
		if gone > 0 && (st.goneSent == 0 || uint32(s.next)+1-st.goneSent >= resendInterval) {
			s.enqueue(id, -1, s.codec.find(id)).need = removalBits * bit
			gone--
		}
	}
	s.store.live = kept
}

// enqueue appends a candidate to the list, and returns it with the typical need.
func (s *Sender) enqueue(id uint16, at, base int32) *candidate {
	c := &s.builder
	c.list = append(c.list, candidate{})
	x := &c.list[len(c.list)-1]
	x.id, x.at, x.base = id, at, base
	if base >= 0 {
		x.with = 1
		c.at[base] = int32(len(c.list))
	}
	x.need = int32(s.typical[x.with])
	return x
}

// more appends the object with the next highest sum to the list. It reports false if there is none.
func (s *Sender) more() bool {
	at, ok := s.accumulator.Next()
	if ok {
		id, base := s.world.states[at].id, int32(-1)
		st := s.store.objects.at(id)
		if !s.codec.keyframe {
			base = st.base - 1
		}
		if x := s.enqueue(id, int32(at), base); st.bits[x.with] > 0 {
			x.need = int32(st.bits[x.with]) * needUnit
		}
	}
	return ok
}

// overpick is the fraction of the space by which the estimates of picked updates may exceed it.
const overpick = 16

// pickFirst picks the first candidates, somewhat more than may fit.
func (s *Sender) pickFirst() {
	c := &s.builder
	for i := range c.list {
		if x := &c.list[i]; x.state != excluded {
			x.state = waiting
		}
	}
	c.tail, c.count, c.pending, c.needed = 0, 0, 0, 0
	if c.first < 0 {
		return
	}
	s.pick(c.first)
	if c.tail = c.first + 1; c.attempt < firstAlone {
		s.add(c.limit*bit - s.overhead)
	}
}

func (s *Sender) pick(i int) {
	c := &s.builder
	x := &c.list[i]
	x.state = picked
	c.count++
	c.pending += int(x.need)
}

func (s *Sender) add(room int) {
	c := &s.builder
	room += room/overpick + s.typical[1]
	for passed := 0; passed < maxMisfits && c.count < maxUpdates; c.tail++ {
		if c.tail == len(c.list) && !s.more() {
			return
		}
		x := &c.list[c.tail]
		switch {
		case x.state != waiting || s.passed(x):
			passed++
		case c.pending+int(x.need) > room:
			return
		default:
			s.pick(c.tail)
			passed = 0
		}
	}
}

// passed reports whether the place of an update in this packet has passed.
func (s *Sender) passed(x *candidate) bool {
	c := &s.builder
	switch {
	case c.viewerCoded && s.hasViewer && x.id == s.viewer:
		return true
	case x.base >= 0:
		return int(x.base) < c.next || c.ctx > 1
	}
	return c.ctx > 1 && int64(x.id) <= c.last
}

// adjust drops or adds the last candidates depending on the space that is left.
func (s *Sender) adjust() {
	c := &s.builder
	room := c.limit*bit - c.size
	if s.drop(room); c.attempt < firstAlone && c.pending+s.typical[1] < room {
		s.add(room)
	}
}

// drop drops the last picked candidates until the others should fit.
func (s *Sender) drop(room int) {
	c := &s.builder
	for room += room/overpick + s.typical[1]; c.pending > room && c.tail > 0; {
		c.tail--
		if x := &c.list[c.tail]; x.state == picked && c.tail != c.first {
			x.state = waiting
			c.count--
			c.pending -= int(x.need)
		}
	}
}

// maxMisfits is the number of consecutive candidates that do not fit before the builder stops
// adding others, and the number of those tried alone.
const maxMisfits = 12
