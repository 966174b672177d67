package statesync

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Info says what a sender put into a packet.
type Info struct {
	Seq  uint16
	Tick int64
	// Baseline is how many packets before it the newest acked one is; 0 if it refers to none.
	Baseline int
	Bytes    int
	// Objects are those that are updated, or said to be gone; the slice is valid until the next Append. Whole is how
	// many of them have no baseline, Gone how many are gone.
	Objects     []uint16
	Whole, Gone int
	// Ticks is of how many ticks it has the inputs.
	Ticks int
}

// Sender makes one player's packets.
type Sender struct {
	cfg     Config
	walk    walk
	book    book
	prior   *state
	waiting accumulator
	objects table[subject]
	live    []uint16 // the objects that the receiver may have, ascending
	inputs  inputLog
	chooser chooser
	viewer  uint16
	sees    bool

	next  uint64 // sequence
	start uint64 // of the epoch
	epoch uint8
	acked bool   // whether there is a newest acked packet in the epoch
	since uint64 // the next packet when the first one of the epoch was acked
	last  uint64
	tick  int64
	stats SenderStats
	info  Info
}

// subject is what a sender keeps of an object.
type subject struct {
	given    float64   // priority for the next packet
	moving   float64   // priority while it last moved
	bits     [2]uint16 // what its last update took, without and with a baseline, in needUnit; 0 if there was none
	live     bool      // the receiver may have it
	goneSent uint64    // sequence + 1 of the last packet that said that it is gone
	seen     uint64    // the last packet whose set had it, + 1:
	at       int32     // its place there
	base     int32     // and among bases, or -1
}

// NewSender makes a sender of objects of the schema. The error names the setting that is wrong.
func NewSender(schema *snapshot.Schema, cfg Config) (*Sender, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	p, err := newPlan(schema, &cfg)
	if err != nil {
		return nil, err
	}
	s := &Sender{cfg: cfg, next: cfg.First, start: cfg.First, epoch: cfg.Epoch, prior: p.newState()}
	s.book.final = cfg.First
	s.book.plan = p
	s.walk.Coder = rangecoder.NewCoder(slowest, false)
	s.walk.init(&s.book)
	s.inputs.clear()
	s.chooser.init(p)
	return s, nil
}

// SetBudget changes the most bytes of a packet from the next one on, 1 to [MaxPacket].
func (s *Sender) SetBudget(bytes int) error {
	if err := checkBudget(bytes); err != nil {
		return err
	}
	s.cfg.Budget = bytes
	return nil
}

// SetViewer names the object that places of others are told from where that is shorter: the player's.
func (s *Sender) SetViewer(id uint16) { s.viewer, s.sees = id, true }

// Prioritize gives an object's priority for the next packet, where what was given for those before adds up until the
// object is sent. A resting object keeps the priority that it had when it last moved, if that is larger, until the
// receiver is known to have its final state. An error is a [*PriorityError]; nothing is changed then.
func (s *Sender) Prioritize(id uint16, priority float64) error {
	if err := checkPriority(id, priority); err != nil {
		return err
	}
	s.objects.at(id).given = priority
	return nil
}

// AddInputs gives all players' inputs of a tick, by ascending player, to be sent until they are acked. Ticks ascend; one
// that is left out is missing. They are copied. An error says what is wrong; nothing is changed then.
func (s *Sender) AddInputs(tick int64, inputs ...Input) error { return s.inputs.add(tick, inputs) }

// Append appends the packet of a tick, which has to be later than the one before it: the inputs that are not acked, and
// of the set's objects those whose priorities have added up to most, as many as fit the budget. It gives the extended slice.
// Errors are [ErrTick] and [ErrBudget]; nothing is sent then, dst is as it was, and priorities keep adding up. set is of
// the sender's schema. It allocates nothing once warm and dst has room.
func (s *Sender) Append(dst []byte, tick int64, set *snapshot.Set) ([]byte, Info, error) {
	if s.stats.Packets > 0 && tick <= s.tick || fixed.Abs(tick) > maxTick {
		return dst, Info{}, fmt.Errorf("%w: %d after %d", ErrTick, tick, s.tick)
	}
	s.renew(tick)
	s.aim()
	s.rate(set)
	out, err := s.choose(tick, set)
	if err != nil {
		return dst, Info{}, err
	}
	return append(dst, out...), s.commit(tick, len(out)), nil
}

// renew starts models and baselines anew where what they are built on is about to be lost, or the tick is too far on.
func (s *Sender) renew(tick int64) {
	base := s.start
	if s.acked {
		base = s.last
	}
	if s.next-base > farthest || s.acked && tick-s.book.get(s.last).tick > maxJump {
		s.restart()
	}
}

func (s *Sender) restart() {
	s.epoch++
	s.start, s.acked = s.next, false
	s.book.clear(s.start)
	s.stats.Starts++
}

// aim finds the view that the next packet is coded from.
func (s *Sender) aim() {
	w := &s.walk
	w.root = !s.acked || s.cfg.NoDelta
	w.view, w.bases = view{}, w.bases[:0]
	if s.acked {
		w.base = s.book.get(s.last)
		w.view, _ = s.book.look(s.last, s.recent())
		w.bases = s.book.bases(w.bases, &w.view)
	}
}

// recent says which of the packets before the newest acked one are held.
func (s *Sender) recent() (said uint32) {
	for i := range min(settled-1, s.last) {
		if p := s.book.get(s.last - 1 - i); p != nil && p.held {
			said |= 1 << i
		}
	}
	return said
}

// rate adds up priorities: the objects of the set, with their baselines, both by ascending id.
func (s *Sender) rate(set *snapshot.Set) {
	bases, at := s.walk.bases, 0
	for i := range set.Len() {
		o := set.Object(i)
		sub := s.objects.at(o.ID)
		for at < len(bases) && bases[at].object.ID < o.ID {
			at++
		}
		var base *record
		sub.seen, sub.at, sub.base = s.next+1, int32(i), -1
		if at < len(bases) && bases[at].object.ID == o.ID {
			base, sub.base = bases[at], int32(at)
		}
		p, row := sub.given, set.Row(i)
		sub.given = 0
		switch plan := s.book.plan; {
		case p == 0 && sub.moving == 0:
		case !plan.rests(row, plan.rest < 0 && plan.zero(row)):
			if p > 0 {
				sub.moving = p
			}
		case sub.moving > 0 && base != nil && base.object == o && slices.Equal(base.row(), row):
			sub.moving = 0
		default:
			p = max(p, sub.moving)
		}
		if p > 0 {
			_ = s.waiting.Add(o.ID, p)
		}
	}
}

// commit files the packet that was made.
func (s *Sender) commit(tick int64, bytes int) Info {
	c, p := &s.chooser, &s.chooser.out
	in := Info{Seq: uint16(s.next), Tick: tick, Bytes: bytes, Objects: s.info.Objects[:0], Ticks: int(p.to - p.from)}
	if !s.walk.root {
		in.Baseline = int(s.next - s.last)
	}
	for i := range c.list {
		x := &c.list[i]
		if x.lot != sent {
			continue
		}
		sub := s.objects.at(x.object.ID)
		if x.row == nil {
			in.Gone++
			sub.goneSent, sub.moving = s.next+1, 0
			continue
		}
		if x.base < 0 {
			in.Whole++
		}
		sub.goneSent = 0
		s.waiting.Sent(x.object.ID)
		if !sub.live {
			sub.live = true
			i, _ := slices.BinarySearch(s.live, x.object.ID)
			s.live = slices.Insert(s.live, i, x.object.ID)
		}
	}
	p.sort()
	for _, r := range p.updates {
		in.Objects = append(in.Objects, r.object.ID)
	}
	p.held = false
	s.book.put(p)
	s.next, s.tick, s.info = s.next+1, tick, in
	s.stats.Packets++
	s.stats.Bytes += uint64(bytes)
	s.stats.Updates += uint64(len(in.Objects))
	s.stats.Whole += uint64(in.Whole)
	s.stats.Gone += uint64(in.Gone)
	return in
}

// Ack takes the receiver's ack. Old and repeated ones, and those of another epoch, do nothing; one that names a packet that
// was never sent is [snapshot.ErrAck], and does nothing either. One that asks for a new start, or that takes back what an earlier one
// said, makes the next packet refer to nothing.
func (s *Sender) Ack(a Ack) error {
	if a.None {
		if a.Reset && s.acked {
			s.restart()
		}
		return nil
	}
	newest := expand(uint64(a.Newest), longBits, s.next)
	if a.Epoch == s.epoch && newest >= s.next {
		s.stats.ImpossibleAcks++
		return fmt.Errorf("%w: of packet %d, the next is %d", snapshot.ErrAck, a.Newest, uint16(s.next))
	}
	if a.Epoch != s.epoch || newest < s.start {
		s.stats.StaleAcks++
		if a.Reset && s.acked && s.next >= s.since+settled {
			s.restart() // the epoch was acked by one that does not have it
		}
		return nil
	}
	s.stats.Acks++
	if a.Reset || s.denied(newest, a.Window) {
		s.restart()
		return nil
	}
	s.arrived(newest)
	for i := range min(ring-1, newest-s.start) {
		if a.Window>>i&1 != 0 {
			s.arrived(newest - 1 - i)
		}
	}
	if !s.acked {
		s.since = s.next
	}
	if !s.acked || newest > s.last {
		s.acked, s.last = true, newest
		s.book.settle(newest)
	}
	return nil
}

// denied says that an ack takes back what is settled: that a packet is held. Whoever acked it did not have it.
func (s *Sender) denied(newest, window uint64) bool {
	if !s.acked || newest < s.last {
		return false
	}
	for i := uint64(settled - 1); i < min(ring-1, newest-s.start); i++ {
		if p := s.book.get(newest - 1 - i); p != nil && p.held && window>>i&1 == 0 {
			return true
		}
	}
	return false
}

func (s *Sender) arrived(seq uint64) {
	p := s.book.get(seq)
	if p == nil || p.held {
		return
	}
	p.held = true
	s.inputs.acked(p.from, p.to)
}

// Next gives what a sender after this one begins with: see [Config.First].
func (s *Sender) Next() (first uint64, epoch uint8) { return s.next, s.epoch + newEpoch }

// Stats gives the counts so far.
func (s *Sender) Stats() SenderStats { return s.stats }
