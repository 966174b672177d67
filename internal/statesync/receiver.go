package statesync

import (
	"errors"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Update is a decoded packet: states and inputs of the sender's simulation.
type Update struct {
	// Seq is the low 16 bits of the sequence number.
	Seq  uint16
	Tick int64
	// Late reports that a packet with a later tick was decoded before.
	Late bool
	// First reports that this is the first packet of a new sender. Ticks and objects of earlier
	// packets are obsolete.
	First bool
	// Inputs contains the inputs of ticks that no earlier packet contained, oldest first.
	Inputs []TickInputs
	// Objects are the updates of objects, by ascending id.
	Objects []ObjectUpdate
}

// ObjectUpdate is the state of an object, or its removal.
type ObjectUpdate struct {
	snapshot.Object
	// Gone reports that the object was removed. Row is nil in this case.
	Gone bool
	// Row is the components of the object in the sender's set.
	Row []int32
}

// ReceiverStats counts packets.
type ReceiverStats struct {
	// Packets is the number of decoded packets, Reordered the number of packets that arrived after
	// a newer one.
	Packets, Reordered uint64
	// These are the numbers of dropped packets, by reason.
	Late, Duplicate, BaselineMissing, Desync, Malformed uint64
	// Lost is the number of packets that have not arrived so far.
	Lost uint64
}

// Receiver decodes the packets of one [Sender], which may be lost, duplicated, reordered or forged.
// Not safe for concurrent use.
type Receiver struct {
	codec   payloadCodec
	store   baselineStore
	prior   *modelState
	work    packet
	ticks   inputLog // inputs of the packet that is being decoded
	inputs  inputLog
	decoded seq.Window
	epoch   uint8
	reset   bool // the next acks request a restart
	update  Update
	rows    []int32 // memory of the rows of update
	spare   []Input
	stats   ReceiverStats
}

// NewReceiver returns a receiver of objects of a schema. It uses Velocities and Rest of cfg, which
// must be those of the sender. An error names the invalid setting.
func NewReceiver(objects *snapshot.Schema, cfg Config) (*Receiver, error) {
	p, err := newPlan(objects, &cfg)
	if err != nil {
		return nil, err
	}
	r := &Receiver{prior: p.newState()}
	r.store.init(p)
	r.codec.init(p, true)
	r.codec.pool = &r.store.pool
	r.inputs.clear()
	return r, nil
}

// Decode decodes a packet and returns its update, which is valid until the next call. Any input is
// safe. An error wraps one of [snapshot.ErrLate], [snapshot.ErrBaselineMissing],
// [snapshot.ErrDesync] and [snapshot.ErrMalformed]; the packet is counted and has no other effect.
// Only errors allocate.
func (r *Receiver) Decode(packet []byte) (*Update, error) {
	next := uint64(0)
	if r.decoded.Any {
		next = r.decoded.Newest + 1
	}
	h, coded, err := parseHeader(packet, next)
	if err == nil {
		err = r.check(&h)
	}
	if err == nil {
		err = r.decode(&h, coded)
	}
	if err != nil {
		r.count(err, &h)
		return nil, err
	}
	return r.accept(&h), nil
}

func (r *Receiver) ahead(seq uint64) bool { return !r.decoded.Any || seq > r.decoded.Newest }

var errDuplicate = fmt.Errorf("%w: decoded before", snapshot.ErrLate)

func (r *Receiver) check(h *header) error {
	newest := r.decoded.Newest
	if r.decoded.Has(h.seq) {
		return errDuplicate
	}
	if r.decoded.Any && h.seq+ring <= newest || h.distance > h.seq {
		return fmt.Errorf("%w: packet %d, the newest is %d", snapshot.ErrLate, uint16(h.seq), uint16(newest))
	}
	if h.distance == 0 {
		if !r.ahead(h.seq) && h.epoch != r.epoch {
			return fmt.Errorf("%w: packet %d of an older epoch", snapshot.ErrLate, uint16(h.seq))
		}
		return nil
	}
	base := h.seq - h.distance
	if !r.store.held(base) {
		return fmt.Errorf("%w: packet %d, %d before it", snapshot.ErrBaselineMissing, uint16(h.seq), h.distance)
	}
	if base < r.store.floor {
		return fmt.Errorf("%w: packet %d refers to %d, the newest is %d", snapshot.ErrLate, uint16(h.seq), uint16(base), uint16(newest))
	}
	return nil
}

func (r *Receiver) decode(h *header, coded []byte) error {
	pc, p := &r.codec, &r.work
	r.store.open(p)
	pc.out, pc.keyframe, pc.bases, pc.view = p, h.distance == 0, pc.bases[:0], view{}
	p.seq, p.tick, p.base, p.from, p.to = h.seq, h.tick, h.seq-h.distance, 0, 0
	if !pc.keyframe {
		pc.base = r.store.get(p.base)
	}
	pc.begin(r.prior)
	pc.Dec.Reset(coded, 0)
	if !pc.keyframe {
		var ok bool
		if pc.view, ok = r.store.view(p.base, pc.codeRecent(0)); !ok {
			return fmt.Errorf("%w: packet %d refers to a lost one", snapshot.ErrBaselineMissing, uint16(h.seq))
		}
		pc.bases, pc.records = r.store.bases(pc.bases, pc.records[:0], &pc.view)
	}
	if !pc.codeTick() {
		return fmt.Errorf("%w: tick of packet %d", snapshot.ErrMalformed, uint16(h.seq))
	}
	if !pc.checkHash() {
		return fmt.Errorf("%w: packet %d", snapshot.ErrDesync, uint16(h.seq))
	}
	r.ticks.clear()
	viewer, has := pc.codeViewerID(0, false)
	if !pc.codeInputs(&r.ticks) || !r.decodeUpdates(viewer, has) || !pc.Dec.Complete() {
		return fmt.Errorf("%w: packet %d", snapshot.ErrMalformed, uint16(h.seq))
	}
	p.sort()
	return r.checkTick(h)
}

// decodeUpdates decodes the updates in the order in which Sender.updates codes them. It reports
// false if they are invalid.
func (r *Receiver) decodeUpdates(viewer uint16, has bool) bool {
	pc, s := &r.codec, r.work.state
	if has {
		at := pc.find(viewer)
		switch {
		case pc.Bit(&s.viewer[2], false):
			var base *record
			if at >= 0 {
				base = pc.baseline(at)
			}
			to := pc.newRecord(viewer)
			if pc.codeUpdate(to, base, nil); !to.gone {
				pc.setViewerPosition(pc.object.now)
			}
		case at >= 0:
			pc.setViewerPosition(pc.unpack(at))
		}
	}
	at, bases := 0, pc.members()
	for ctx := 0; pc.Bit(&s.more[ctx], false); ctx = 1 {
		for at < len(bases) && (has && bases[at].object.ID == viewer || !pc.codeMember(&bases[at], false)) {
			at++
		}
		if at == len(bases) || !r.decodeUpdate(bases[at].object.ID, pc.records[at]) {
			return false
		}
		at++
	}
	id := int64(-1)
	for ctx := 2; pc.Bit(&s.more[ctx], false); ctx = 3 {
		before := id
		id = pc.codeNewID(0, before)
		if id <= before || id > 1<<16-1 || has && id == int64(viewer) {
			return false
		}
		if pc.find(uint16(id)) >= 0 || !r.decodeUpdate(uint16(id), nil) {
			return false
		}
	}
	return !pc.Bad
}

func (r *Receiver) decodeUpdate(id uint16, base *record) bool {
	pc := &r.codec
	if len(pc.out.updates) == maxUpdates {
		return false
	}
	pc.codeUpdate(pc.newRecord(id), base, nil)
	return !pc.Bad
}

func (r *Receiver) isFirst(h *header) bool {
	return !r.decoded.Any || h.distance == 0 && h.seq > r.decoded.Newest && h.epoch-r.epoch >= newEpoch/2
}

// checkTick checks that ticks are in the order of sequence numbers.
func (r *Receiver) checkTick(h *header) error {
	if r.isFirst(h) {
		return nil
	}
	newest, p := r.store.get(r.decoded.Newest), &r.work
	if p.seq > newest.seq && p.tick <= newest.tick || p.seq < newest.seq && p.tick >= newest.tick {
		return fmt.Errorf("%w: tick %d of packet %d, %d is of %d", snapshot.ErrMalformed, p.tick, uint16(p.seq), newest.tick, uint16(newest.seq))
	}
	return nil
}

// count counts a dropped packet and requests a restart of the sender if that helps.
func (r *Receiver) count(err error, h *header) {
	switch {
	case errors.Is(err, errDuplicate):
		r.stats.Duplicate++
	case errors.Is(err, snapshot.ErrLate):
		r.stats.Late++
	case errors.Is(err, snapshot.ErrBaselineMissing):
		r.stats.BaselineMissing++
		r.reset = r.reset || r.ahead(h.seq)
	case errors.Is(err, snapshot.ErrDesync):
		r.stats.Desync++
		r.reset = true
	default:
		r.stats.Malformed++
	}
}

func (r *Receiver) accept(h *header) *Update {
	n, ahead, before := h.seq, r.ahead(h.seq), r.decoded
	r.stats.Packets++
	u := &r.update
	u.Seq, u.Tick, u.Late = uint16(n), r.work.tick, !ahead
	if u.First = r.isFirst(h); u.First {
		r.inputs.clear()
	}
	r.acceptInputs(u)
	if !ahead {
		r.stats.Reordered++
		r.stats.Lost -= min(r.stats.Lost, 1)
	} else if before.Any {
		r.stats.Lost += n - before.Newest - 1
	}
	if ahead && h.distance == 0 && (!before.Any || h.epoch != r.epoch) {
		r.store.clear(n - min(n, reorderLimit-1))
		r.epoch, r.reset = h.epoch, false
	} else if ahead {
		r.discardOld(before.Newest, n)
	}
	r.decoded.Add(n)
	from := &r.work
	if ahead || n+reorderLimit > before.Newest {
		r.work.held = true
		from = r.store.put(&r.work)
	}
	r.store.sweep()
	u.Objects, r.rows = u.Objects[:0], slices.Grow(r.rows[:0], len(from.updates)*r.store.plan.ints)
	for _, o := range from.updates {
		x := ObjectUpdate{Object: o.object, Gone: o.gone}
		if !o.gone {
			n, ints := len(r.rows), r.store.plan.ints
			r.rows = r.rows[:n+ints]
			x.Row = r.rows[n : n+ints : n+ints]
			r.store.plan.packing.Unpack(x.Row, r.store.plan.wordsOf(o))
		}
		u.Objects = append(u.Objects, x)
	}
	return u
}

// discardOld discards packets to which the sender no longer refers. These are packets more than
// maxDistance before newest, and packets before the base of a packet that is reorderLimit older
// than newest.
func (r *Receiver) discardOld(before, newest uint64) {
	end := min(newest, before+ring)
	for n := before + 1; n <= end; n++ {
		if n < reorderLimit {
			continue
		}
		if p := r.store.get(n - reorderLimit); p != nil && p.base != p.seq {
			r.store.settle(p.base)
		}
	}
	r.store.settle(newest - min(newest, maxDistance))
	for n := before + 1; n <= end; n++ {
		r.store.packets.Delete(n - ring)
	}
}

// acceptInputs adds the inputs of the packet that no earlier packet contained to the update.
func (r *Receiver) acceptInputs(u *Update) {
	u.Inputs, r.spare = u.Inputs[:0], r.spare[:0]
	for t := r.work.from; t < r.work.to; t++ {
		o := r.ticks.slot(t)
		if !r.inputs.accept(o) {
			continue
		}
		n := len(r.spare)
		r.spare = unflatten(r.spare, r.inputs.slot(t).flat)
		u.Inputs = append(u.Inputs, TickInputs{Tick: t, Missing: !o.known, Inputs: r.spare[n:len(r.spare):len(r.spare)]})
	}
}

// Ack returns an ack of the packets decoded so far.
func (r *Receiver) Ack() Ack {
	if !r.decoded.Any {
		return Ack{None: true, Reset: r.reset}
	}
	a := Ack{Reset: r.reset, Epoch: r.epoch, Newest: uint16(r.decoded.Newest)}
	for i := range min(ackWindow, r.decoded.Newest) {
		if r.store.held(r.decoded.Newest - 1 - i) {
			a.Window |= 1 << i
		}
	}
	return a
}

// Stats returns the counts so far.
func (r *Receiver) Stats() ReceiverStats { return r.stats }
