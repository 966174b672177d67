package statesync

import (
	"fmt"
	"slices"

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

// Sender makes one player's packets. It keeps the last [Ring] of them with the models after each: 2 to 4 MiB for
// 900 objects, by the budget.
type Sender struct {
	cfg     Config
	walk    walk
	book    book
	prior   *state
	waiting Accumulator
	objects table[subject]
	live    []snapshot.Object // those that the receiver may have, by ascending id
	inputs  inputLog
	chooser chooser
	viewer  uint16
	sees    bool

	next  uint64 // sequence
	start uint64 // of the epoch
	epoch uint8
	acked bool // whether there is a newest acked packet in the epoch
	last  uint64
	tick  int64
	stats SenderStats
	info  Info
}

// subject is what a sender keeps of an object.
type subject struct {
	given    float64   // priority for the next packet
	moving   float64   // priority while it last moved
	bits     [2]uint16 // what its last update took, without and with a baseline
	goneSent uint64    // sequence + 1 of the last packet that said that it is gone
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
	s := &Sender{cfg: cfg, epoch: cfg.Epoch, prior: p.newState()}
	s.book.plan = p
	s.walk.plan, s.walk.book, s.walk.novel = p, &s.book, !cfg.NoRelative
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
	if s.next > 0 && tick <= s.tick || abs(tick) > maxTick {
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
	s.book.clear()
	s.stats.Starts++
}

// aim finds the view that the next packet is coded from.
func (s *Sender) aim() {
	w := &s.walk
	w.root = !s.acked || s.cfg.NoDelta
	w.view = view{}
	if s.acked {
		w.base = s.book.get(s.last)
		w.view, _ = s.book.look(s.last, s.recent())
	}
	w.prepare()
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
	bases := s.walk.bases
	for i := range set.Len() {
		o := set.Object(i)
		sub := s.objects.at(o.ID)
		for len(bases) > 0 && bases[0].base.object.ID < o.ID {
			bases = bases[1:]
		}
		p, row := sub.given, set.Row(i)
		sub.given = 0
		switch {
		case !s.book.plan.rests(row):
			if p > 0 {
				sub.moving = p
			}
		case sub.moving > 0 && len(bases) > 0 && bases[0].base.object == o && slices.Equal(bases[0].base.row, row):
			sub.moving = 0
		default:
			p = max(p, sub.moving)
		}
		if p > 0 {
			_ = s.waiting.Add(o.ID, p)
		}
	}
}

// commit files the packet that was chosen.
func (s *Sender) commit(tick int64, bytes int) Info {
	p := &s.chooser.best
	in := Info{Seq: uint16(s.next), Tick: tick, Bytes: bytes, Objects: s.info.Objects[:0], Ticks: int(p.to - p.from)}
	if !s.walk.root {
		in.Baseline = int(s.next - s.last)
	}
	for i := range s.chooser.jobs {
		j := &s.chooser.jobs[i]
		in.Objects = append(in.Objects, j.object.ID)
		sub := s.objects.at(j.object.ID)
		switch {
		case j.gone:
			in.Gone++
			sub.goneSent, sub.moving = s.next+1, 0
		default:
			if !j.has {
				in.Whole++
			}
			sub.goneSent = 0
			s.waiting.Sent(j.object.ID)
			s.lives(j.object)
		}
	}
	s.book.evict(int(s.next % Ring))
	p.held = false
	s.book.put(p)
	if p.state == nil {
		p.state = s.book.plan.newState()
	}
	s.next, s.tick, s.info = s.next+1, tick, in
	s.stats.Packets++
	s.stats.Bytes += uint64(bytes)
	s.stats.Updates += uint64(len(in.Objects))
	s.stats.Whole += uint64(in.Whole)
	s.stats.Gone += uint64(in.Gone)
	return in
}

// lives notes that the receiver may have an object from now on.
func (s *Sender) lives(o snapshot.Object) {
	i, ok := slices.BinarySearchFunc(s.live, o.ID, func(o snapshot.Object, id uint16) int { return int(o.ID) - int(id) })
	if !ok {
		s.live = slices.Insert(s.live, i, o)
	}
	s.live[i] = o
}

// Ack takes the receiver's ack. Old and repeated ones, and those of another epoch, do nothing; one that names a packet that
// was never sent is [ErrAck], and does nothing either.
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
		return fmt.Errorf("%w: of packet %d, the next is %d", ErrAck, a.Newest, uint16(s.next))
	}
	if a.Epoch != s.epoch || newest < s.start {
		s.stats.StaleAcks++
		return nil
	}
	s.stats.Acks++
	s.arrived(newest)
	for i := range uint64(Ring - 1) {
		if i+1 > newest-s.start {
			break
		}
		if a.Window>>i&1 != 0 {
			s.arrived(newest - 1 - i)
		}
	}
	if !s.acked || newest > s.last {
		s.acked, s.last = true, newest
	}
	if a.Reset {
		s.restart()
	}
	return nil
}

func (s *Sender) arrived(seq uint64) {
	p := s.book.get(seq)
	if p == nil || p.held {
		return
	}
	p.held = true
	s.inputs.acked(p.from, p.to)
}

// Stats gives the counts so far.
func (s *Sender) Stats() SenderStats { return s.stats }
