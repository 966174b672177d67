package perplayerstate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/snapshot"
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
}

// SenderStats counts packets and acks.
type SenderStats struct {
	// Packets, their bytes and updates, updates without a baseline, and removals.
	Packets, Bytes, Updates, Whole, Gone uint64
	// Accepted acks, acks of an older epoch, and acks of packets that were never sent.
	Acks, StaleAcks, ImpossibleAcks uint64
	// Starts is the number of restarts, because acks were missing or the receiver requested one.
	Starts uint64
}

// Sender encodes the packets of one player. Not safe for concurrent use.
type Sender struct {
	cfg         Config
	codec       payloadCodec
	store       baselineStore
	prior       *modelState
	accumulator accumulator
	objects     table[sendState]
	live        []uint16 // objects that the receiver may have, ascending
	inputs      inputLog
	builder     packetBuilder
	viewer      uint16
	hasViewer   bool

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

type sendState struct {
	priority       float64   // for the next packet
	movingPriority float64   // when the object last moved
	bits           [2]uint16 // size of its last update without and with a baseline, in needUnit; or 0
	live           bool      // the receiver may have the object
	goneSent       uint64    // sequence number + 1 of the last packet with its removal
	seen           uint64    // sequence number + 1 of the last packet whose set contained the object
	at             int32     // its index in that set
	base           int32     // its index among the baselines, or -1
}

// NewSender returns a sender of objects of a schema. An error names the invalid setting.
func NewSender(schema *snapshot.Schema, cfg Config) (*Sender, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	p, err := newPlan(schema, &cfg)
	if err != nil {
		return nil, err
	}
	s := &Sender{cfg: cfg, next: cfg.First, start: cfg.First, epoch: cfg.Epoch, prior: p.newState()}
	s.store.init(p)
	s.store.final = cfg.First
	s.codec.init(&s.store, false)
	s.inputs.clear()
	s.builder.typical, s.builder.saved.state = [2]int{p.ints * 12 * bit, p.ints * 6 * bit}, p.newState()
	return s, nil
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

// Prioritize sets the priority of an object for the next packet. Priorities accumulate until the
// object is sent. For an object at rest, the priority that it had when it last moved counts
// instead, if that is higher, until the final state of the object is acked. An error is a
// [*PriorityError] and changes nothing.
func (s *Sender) Prioritize(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return &PriorityError{id, priority}
	}
	s.objects.at(id).priority = priority
	return nil
}

// AddInputs adds all players' inputs of a tick, by ascending player, to be sent until they are
// acked. Each call must have a later tick than the call before. A tick that is omitted is reported
// as [TickInputs.Missing]. The inputs are copied. After an error nothing is changed.
func (s *Sender) AddInputs(tick int64, inputs ...Input) error { return s.inputs.add(tick, inputs) }

// Append appends the packet of a tick, which must be after the previous one, and returns the
// extended slice. The packet contains the inputs that are not acked, and as many updates of the
// set's objects as fit into the budget, those with the highest accumulated priorities first. set
// must have the sender's schema. Errors are [ErrTick] and [ErrBudget]; dst is then unchanged.
// Append does not allocate once warm if dst has room.
func (s *Sender) Append(dst []byte, tick int64, set *snapshot.Set) ([]byte, Info, error) {
	if s.stats.Packets > 0 && tick <= s.tick || fixed.Abs(tick) > maxTick {
		return dst, Info{}, fmt.Errorf("%w: %d after %d", ErrTick, tick, s.tick)
	}
	s.restartIfDue(tick)
	s.loadView()
	s.accumulate(set)
	out, err := s.choose(tick, set)
	if err != nil {
		return dst, Info{}, err
	}
	return append(dst, out...), s.commit(tick, len(out)), nil
}

// restartIfDue restarts if the acked packets are about to be too old, or the tick is too far ahead.
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
	pc.keyframe = !s.acked || s.cfg.NoDelta
	pc.view, pc.bases = view{}, pc.bases[:0]
	if s.acked {
		pc.base = s.store.get(s.last)
		pc.view, _ = s.store.view(s.last, s.recent())
		pc.bases = s.store.bases(pc.bases, &pc.view)
	}
}

// recent returns which of the packets before the newest acked one were decoded.
func (s *Sender) recent() (said uint32) {
	for i := range min(reorderLimit-1, s.last) {
		if s.store.held(s.last - 1 - i) {
			said |= 1 << i
		}
	}
	return said
}

// accumulate adds the priorities of the set's objects and finds their baselines.
func (s *Sender) accumulate(set *snapshot.Set) {
	bases, at := s.codec.bases, 0
	for i := range set.Len() {
		o := set.Object(i)
		st := s.objects.at(o.ID)
		for at < len(bases) && bases[at].object.ID < o.ID {
			at++
		}
		var base *record
		st.seen, st.at, st.base = s.next+1, int32(i), -1
		if at < len(bases) && bases[at].object.ID == o.ID {
			base, st.base = bases[at], int32(at)
		}
		p, row := st.priority, set.Row(i)
		st.priority = 0
		switch plan := s.store.plan; {
		case p == 0 && st.movingPriority == 0:
		case !plan.rests(row, plan.rest < 0 && plan.zero(row)):
			if p > 0 {
				st.movingPriority = p
			}
		case st.movingPriority > 0 && base != nil && base.object == o && slices.Equal(base.row(), row):
			st.movingPriority = 0
		default:
			p = max(p, st.movingPriority)
		}
		if p > 0 {
			s.accumulator.Add(o.ID, p)
		}
	}
}

func (s *Sender) commit(tick int64, bytes int) Info {
	c, p := &s.builder, &s.builder.out
	in := Info{Seq: uint16(s.next), Tick: tick, Bytes: bytes, Objects: s.info.Objects[:0], Ticks: int(p.to - p.from)}
	if !s.codec.keyframe {
		in.Baseline = int(s.next - s.last)
	}
	for i := range c.list {
		x := &c.list[i]
		if x.state != sent {
			continue
		}
		st := s.objects.at(x.object.ID)
		if x.row == nil {
			in.Gone++
			st.goneSent, st.movingPriority = s.next+1, 0
			continue
		}
		if x.base < 0 {
			in.Whole++
		}
		st.goneSent = 0
		s.accumulator.Sent(x.object.ID)
		if !st.live {
			st.live = true
			i, _ := slices.BinarySearch(s.live, x.object.ID)
			s.live = slices.Insert(s.live, i, x.object.ID)
		}
	}
	p.sort()
	for _, r := range p.updates {
		in.Objects = append(in.Objects, r.object.ID)
	}
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
			s.restart() // the receiver acked this epoch but lost it
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
			p.held = true
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

// contradicts reports whether an ack denies a packet that was acked before, which is then settled:
// the earlier ack was not of this receiver.
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

// PriorityError reports a priority that is negative, infinite or not a number.
type PriorityError struct {
	Object   uint16
	Priority float64
}

func (e *PriorityError) Error() string {
	return fmt.Sprintf("statesync: object %d: priority %v, want a finite number, 0 or above", e.Object, e.Priority)
}
