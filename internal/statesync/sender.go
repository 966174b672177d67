package statesync

import (
	"errors"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Info describes a packet.
type Info struct {
	// Seq is the low 16 bits of the sequence number.
	Seq  uint16
	Tick int64
	// Baseline is the distance to the newest acked packet, 0 for a keyframe.
	Baseline int
	// Bytes is the size of the packet.
	Bytes int
	// Objects are the ids of the updated and removed objects, valid until the next Append. Whole is
	// the number of updates without a baseline, Gone the number of removals.
	Objects     []uint16
	Whole, Gone int
	// Ticks is the number of ticks whose inputs the packet contains.
	Ticks int
	// Known is the number of objects of the tick that the receiver may have with this packet.
	// Overdue is the number of objects that wait longer than 32 packets at their current priority.
	Known, Overdue int
}

// overdue is the number of packets after which a waiting object counts as overdue.
const overdue = 32

// SenderStats counts packets and acks.
type SenderStats struct {
	// Packets, their bytes and updates, updates without a baseline, and removals.
	Packets, Bytes, Updates, Whole, Gone uint64
	// Acked is the number of packets that were acked.
	Acked uint64
	// Accepted acks, acks of an older epoch, and acks of packets that were never sent.
	Acks, StaleAcks, ImpossibleAcks uint64
	// Starts is the number of restarts, because acks were missing or the receiver requested one.
	Starts uint64
}

// Sender encodes the packets of one player. Not safe for concurrent use.
type Sender struct {
	*workspace // nil except during Append

	world     *Shared
	cfg       Config
	store     sentStore
	own       table[ownPriority]
	hasOwn    bool // some priorities are set in own
	present   int  // number of objects in the world's set that the receiver may have
	overdue   int  // number of objects for Info.Overdue
	inputs    inputLog
	viewer    uint16
	hasViewer bool
	typical   [2]int // mean size of an update without and with a baseline, in 1/256 bit
	overhead  int    // size of the last packet without its updates, in 1/256 bit

	next  uint64 // sequence number of the next packet
	start uint64 // first sequence number of the epoch
	epoch uint8
	acked bool   // a packet of the epoch was acked
	last  uint64 // newest acked packet
	since uint64 // value of next when the first packet of the epoch was acked
	tick  int64
	stats SenderStats
	info  Info
}

// ownPriority is the priority that Sender.Prioritize set for the next packet.
type ownPriority struct {
	priority float64
	set      bool
}

// SetBudget sets the maximum size of the following packets in bytes, 1 to [MaxPacket].
func (s *Sender) SetBudget(bytes int) error {
	if err := checkBudget(bytes); err != nil {
		return err
	}
	s.cfg.Budget = bytes
	return nil
}

// SetViewer sets the viewer object, usually the player's own. Positions of objects without a
// baseline are coded relative to it if that is shorter.
func (s *Sender) SetViewer(id uint16) { s.viewer, s.hasViewer = id, true }

// Prioritize sets the priority of an object for the next packet, instead of that of
// [Shared.Prioritize]. Priorities accumulate until the object is sent. An object at rest keeps at
// least the priority that it had when it last moved, until its final state is acked. After an error
// nothing is changed.
func (s *Sender) Prioritize(id uint16, priority float64) error {
	if err := checkPriority(id, priority); err != nil {
		return err
	}
	*s.own.at(id) = ownPriority{priority, true}
	s.hasOwn = true
	return nil
}

// AddInputs adds all players' inputs of a tick, by ascending player, to be sent until they are
// acked. Each call must have a later tick than the call before. A tick that is omitted is reported
// as [TickInputs.Missing]. The inputs are copied. After an error nothing is changed.
func (s *Sender) AddInputs(tick int64, inputs ...Input) error { return s.inputs.add(tick, inputs) }

// Append appends the packet of the world's tick, which must be after that of the previous packet,
// and returns the extended slice. The packet contains the inputs that are not acked, and as many
// updates of the world's objects as fit into the budget, those with the highest accumulated
// priorities first. Errors are [ErrTick] and [ErrBudget]; dst is then unchanged. Append does not
// allocate once warm if dst has room.
func (s *Sender) Append(dst []byte) ([]byte, Info, error) {
	tick := s.world.tick
	if s.stats.Packets > 0 && tick <= s.tick {
		return dst, Info{}, fmt.Errorf("%w: %d after %d", ErrTick, tick, s.tick)
	}
	s.restartIfDue(tick)
	s.openWorkspace()
	defer s.closeWorkspace()
	s.loadView()
	s.accumulate()
	out, err := s.choose(tick)
	if err != nil {
		return dst, Info{}, err
	}
	return append(dst, out...), s.commit(tick, len(out)), nil
}

// workspace holds the memory that a sender uses only during Append. The senders of a world share
// workspaces through a pool, so that the memory stays in the processor's cache. The garbage
// collector frees idle workspaces.
type workspace struct {
	accumulator accumulator
	codec       payloadCodec
	builder     packetBuilder
	mixed       []float64 // priorities of the world, overridden by those of the sender
}

func (s *Sender) openWorkspace() {
	s.workspace, _ = s.world.workspaces.Get().(*workspace)
	if s.workspace == nil {
		s.workspace = new(workspace)
		s.codec.init(s.world.plan, false)
		s.builder.saved.state = s.world.plan.newState()
	}
	s.codec.sent = &s.store
}

func (s *Sender) closeWorkspace() {
	s.codec.sent, s.codec.base, s.codec.bases = nil, nil, nil
	s.world.workspaces.Put(s.workspace)
	s.workspace = nil
}

// restartIfDue begins an epoch if the newest acked packet is too old to be a base for the next
// packet, by its distance or by its tick.
func (s *Sender) restartIfDue(tick int64) {
	base := s.start
	if s.acked {
		base = s.last
	}
	if s.next-base > maxDistance || s.acked && tick-s.store.get(s.last).tick > maxJump {
		s.restart()
	}
}

// restart begins an epoch: the next packet is a keyframe.
func (s *Sender) restart() {
	s.epoch++
	s.start, s.acked = s.next, false
	s.store.clear(s.start)
	s.stats.Starts++
}

// loadView loads the baselines of the next packet.
func (s *Sender) loadView() {
	pc := &s.codec
	pc.keyframe = !s.acked
	pc.view, pc.bases = view{}, nil
	if s.acked {
		pc.base = s.store.get(s.last)
		pc.view.newest, pc.bases = s.last, s.store.list()
	}
}

// recent returns which of the reorderLimit-1 packets before the newest acked one were decoded. Bit
// i is for the packet i+1 before it.
func (s *Sender) recent() (said uint32) {
	for i := range min(reorderLimit-1, s.last) {
		if s.store.held(s.last - 1 - i) {
			said |= 1 << i
		}
	}
	return said
}

// accumulate adds the priorities of this tick to the sums of the world's objects.
func (s *Sender) accumulate() {
	states := s.world.states
	priorities, keys := s.priorities()[:len(states)], s.accumulator.Open(len(states))[:len(states)]
	present, over := 0, 0
	for i := 0; i < len(states); {
		page, high := s.store.objects.page(states[i].id), states[i].id>>8
		for ; i < len(states) && states[i].id>>8 == high; i++ {
			st, p := &page[uint8(states[i].id)], priorities[i]
			if !states[i].rests {
				if st.compared = false; p > 0 {
					st.movingPriority = p
				}
			} else if st.movingPriority > 0 {
				if st.rests && !st.compared && s.settled(st, i) {
					st.movingPriority = 0
				}
				if p < st.movingPriority {
					p = st.movingPriority
				}
			}
			if st.live {
				present++
			}
			sum := add(st.sum, p)
			st.sum, keys[i] = sum, keyOf(sum, i)
			if p > 0 && sum > overdue*p {
				over++
			}
		}
	}
	s.present, s.overdue = present, over
}

// priorities returns the priorities of the world's objects for the next packet.
func (s *Sender) priorities() []float64 {
	w := s.world
	if !s.hasOwn {
		return w.current
	}
	s.mixed = append(s.mixed[:0], w.current...)
	for i := range w.states {
		if own := s.own.at(w.states[i].id); own.set {
			s.mixed[i], own.set = own.priority, false
		}
	}
	return s.mixed
}

// settled reports whether the receiver has the state of the world's object i, which is at rest. It
// compares the two once for each baseline.
func (s *Sender) settled(st *sendState, i int) bool {
	st.compared = true
	o := &s.world.objects[i]
	return s.store.bases[st.base-1].object == o.Object && slices.Equal(s.store.plan.wordsOf(&record{data: s.store.dataOf(o.ID)}), o.words)
}

func (s *Sender) commit(tick int64, bytes int) Info {
	c, p := &s.builder, &s.builder.out
	in := Info{Seq: uint16(s.next), Tick: tick, Bytes: bytes, Objects: s.info.Objects[:0], Ticks: int(p.to - p.from), Known: s.present, Overdue: s.overdue}
	if !s.codec.keyframe {
		in.Baseline = int(s.next - s.last)
	}
	for i := range c.list {
		x := &c.list[i]
		if x.state != sent {
			continue
		}
		st := s.store.objects.at(x.id)
		if x.at < 0 {
			in.Gone++
			st.goneSent, st.movingPriority = uint32(s.next)+1, 0
			continue
		}
		if x.base < 0 {
			in.Whole++
		}
		if !st.live {
			in.Known++
		}
		st.goneSent = 0
		st.sum = 0
		s.store.setLive(st, x.id)
	}
	for i := range p.sent {
		in.Objects = append(in.Objects, p.sent[i].object.ID)
	}
	slices.Sort(in.Objects)
	p.held = false
	s.store.put(p)
	s.next, s.tick, s.info = s.next+1, tick, in
	s.stats.Packets++
	s.stats.Bytes += uint64(bytes)
	s.stats.Updates += uint64(len(in.Objects))
	s.stats.Whole += uint64(in.Whole)
	s.stats.Gone += uint64(in.Gone)
	return in
}

// Ack processes an ack of the receiver. Old and repeated acks have no effect, and neither have acks
// of another epoch that do not request a reset. An ack of a packet that was never sent is
// [snapshot.ErrAck] and has no effect either. The sender restarts if an ack requests a reset, or
// reports a packet as missing that an earlier ack reported as decoded.
func (s *Sender) Ack(a Ack) error {
	if a.None {
		if a.Reset && s.acked {
			s.restart()
		}
		return nil
	}
	w := a.wire()
	newest := seq.Nearest(uint64(w.Newest), w.Width(), s.next)
	if a.Epoch == s.epoch && newest >= s.next {
		s.stats.ImpossibleAcks++
		return fmt.Errorf("%w: packet %d, the next is %d", snapshot.ErrAck, a.Newest, uint16(s.next))
	}
	if a.Epoch != s.epoch || newest < s.start {
		s.stats.StaleAcks++
		if a.Reset && s.acked && s.next >= s.since+reorderLimit {
			s.restart() // the receiver has lost its state of this epoch
		}
		return nil
	}
	s.stats.Acks++
	if a.Reset || s.contradicts(newest, a.Window) {
		s.restart()
		return nil
	}
	for n := range seq.Acked(newest, a.Window&seq.Mask(min(ackWindow, newest-s.start))) {
		if p := s.store.get(n); p != nil && !p.held {
			s.store.hold(p)
			s.stats.Acked++
			s.inputs.acked(p.from, p.to)
		}
	}
	if !s.acked {
		s.since = s.next
	}
	if !s.acked || newest > s.last {
		s.acked, s.last = true, newest
		s.store.settle(newest)
	}
	return nil
}

// contradicts reports whether an ack reports a settled packet as missing that an earlier ack
// reported as decoded. The earlier ack then was not from this receiver.
func (s *Sender) contradicts(newest, window uint64) bool {
	if !s.acked || newest < s.last {
		return false
	}
	for i := uint64(reorderLimit - 1); i < min(ackWindow, newest-s.start); i++ {
		if window>>i&1 == 0 && s.store.held(newest-1-i) {
			return true
		}
	}
	return false
}

// Next returns the values of [Config.First] and [Config.Epoch] for a sender that replaces s.
func (s *Sender) Next() (first uint64, epoch uint8) { return s.next, s.epoch + newEpoch }

// Stats returns the counts so far.
func (s *Sender) Stats() SenderStats { return s.stats }

// Errors of [Sender.Append]. Nothing was sent, and priorities continue to accumulate. Packets and
// acks are dropped for the reasons of package snapshot: [snapshot.ErrLate],
// [snapshot.ErrBaselineMissing], [snapshot.ErrDesync], [snapshot.ErrMalformed], [snapshot.ErrAck].
var (
	// ErrBudget reports that not even one update fits into the budget. The text contains the size
	// of the smallest packet that was tried.
	ErrBudget = errors.New("statesync: budget too small")
	// ErrTick reports a tick that is not after the previous one.
	ErrTick = errors.New("statesync: tick does not advance")
)

// list starts the list of candidates: first the object with the highest sum, then removals.
// Removals may use half of the packet, so that other objects are updated even when many are removed
// at once.
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

// enqueue appends a candidate with the typical size to the list and returns it.
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

// pickFirst picks the first candidates. Their expected sizes exceed the space slightly.
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

// passed reports whether it is too late to code an update in this packet, because updates after it
// in the coding order were coded.
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
