package statesync

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Update is a packet as it was decoded: what was true at a tick of the sender's.
type Update struct {
	Seq  uint16
	Tick int64
	// Late says that a packet with a later tick was decoded before.
	Late bool
	// First says that the sender begins: nothing from before is of it, not even which objects there are, nor ticks.
	First bool
	// Inputs are the ticks whose inputs, or that they are missing, were not known before, oldest first.
	Inputs []TickInputs
	// Objects by ascending id.
	Objects []ObjectUpdate
}

// ObjectUpdate is an object's state, or that it is gone.
type ObjectUpdate struct {
	snapshot.Object
	// Gone says that there is no such object any more; Row is nil then.
	Gone bool
	// Row has the components as the sender's set had them.
	Row []int32
}

// Receiver rebuilds what one Sender sent, in whatever order it comes. It takes any bytes: what it cannot use it counts
// and forgets.
type Receiver struct {
	walk    walk
	book    book
	prior   *state
	work    packet
	ticks   inputLog // of the packet that is decoded
	inputs  inputLog
	seen    [ring]uint64 // sequence + 1 of what was decoded, at its place
	newest  uint64
	any     bool
	epoch   uint8
	trouble bool
	update  Update
	spare   []Input
	stats   ReceiverStats
}

// NewReceiver makes a receiver of objects of the schema. Of cfg it reads Velocities and Rest, which are the sender's. The
// error names the setting that is wrong.
func NewReceiver(schema *snapshot.Schema, cfg Config) (*Receiver, error) {
	p, err := newPlan(schema, &cfg)
	if err != nil {
		return nil, err
	}
	r := &Receiver{prior: p.newState()}
	r.book.plan, r.walk.Coder = p, rangecoder.NewCoder(slowest, true)
	r.walk.init(&r.book)
	r.inputs.clear()
	return r, nil
}

// Decode rebuilds a packet's update, which is valid until the next call. Any input is safe; what is refused wraps an error of
// this package, is counted, and changes nothing else. It allocates nothing once warm, but for errors.
func (r *Receiver) Decode(packet []byte) (*Update, error) {
	h, coded, err := parseHeader(packet, r.expected())
	if err == nil {
		err = r.fresh(&h)
	}
	if err == nil {
		err = r.decode(&h, coded)
	}
	if err != nil {
		r.count(err, &h)
		return nil, err
	}
	return r.take(&h), nil
}

func (r *Receiver) expected() uint64 {
	if !r.any {
		return 0
	}
	return r.newest + 1
}

// fresh says whether a packet was not decoded before, and could be.
func (r *Receiver) fresh(h *header) error {
	if r.seen[h.seq%ring] == h.seq+1 {
		return errDuplicate
	}
	if r.any && h.seq+ring <= r.newest || h.distance > h.seq {
		return fmt.Errorf("%w: packet %d, the newest is %d", snapshot.ErrLate, uint16(h.seq), uint16(r.newest))
	}
	if h.distance == 0 {
		if r.any && h.seq < r.newest && h.epoch != r.epoch {
			return fmt.Errorf("%w: packet %d of before a new start", snapshot.ErrLate, uint16(h.seq))
		}
		return nil
	}
	base := h.seq - h.distance
	if p := r.book.get(base); p == nil || !p.held {
		return fmt.Errorf("%w: packet %d, %d before it", snapshot.ErrBaselineMissing, uint16(h.seq), h.distance)
	}
	if base < r.book.floor {
		return fmt.Errorf("%w: packet %d refers to %d, the newest is %d", snapshot.ErrLate, uint16(h.seq), uint16(base), uint16(r.newest))
	}
	return nil
}

var errDuplicate = fmt.Errorf("%w: it was decoded before", snapshot.ErrLate)

// decode decodes into r.work.
func (r *Receiver) decode(h *header, coded []byte) error {
	w, p := &r.walk, &r.work
	r.book.open(p)
	w.out, w.root, w.bases, w.view = p, h.distance == 0, w.bases[:0], view{}
	p.seq, p.tick, p.base, p.from, p.to = h.seq, h.tick, h.seq-h.distance, 0, 0
	if !w.root {
		w.base = r.book.get(p.base)
	}
	w.begin(r.prior)
	w.Dec.Reset(coded, 0)
	if !w.root {
		var ok bool
		if w.view, ok = r.book.look(p.base, w.recent(0)); !ok {
			return fmt.Errorf("%w: packet %d reads one that did not come", snapshot.ErrBaselineMissing, uint16(h.seq))
		}
		w.bases = r.book.bases(w.bases, &w.view)
	}
	if !w.tick() {
		return fmt.Errorf("%w: tick of packet %d", snapshot.ErrMalformed, uint16(h.seq))
	}
	if !w.agree() {
		return fmt.Errorf("%w: packet %d", snapshot.ErrDesync, uint16(h.seq))
	}
	r.ticks.clear()
	viewer, has := w.viewer(0, false)
	if !w.inputs(&r.ticks) || !r.objects(viewer, has) || !w.Dec.Complete() {
		return fmt.Errorf("%w: packet %d", snapshot.ErrMalformed, uint16(h.seq))
	}
	p.sort()
	return r.ordered(h)
}

// objects decodes the updates: the viewer's, those of objects with a baseline, and the others.
func (r *Receiver) objects(viewer uint16, has bool) bool {
	w, s := &r.walk, r.work.state
	if has {
		at, old := w.find(viewer)
		switch {
		case w.Bit(&s.viewer[2], false):
			var base *record
			if old {
				base = w.bases[at]
			}
			to := w.fresh(viewer)
			if w.update(to, base, nil); !to.gone {
				w.sight(to.row())
			}
		case old:
			w.sight(w.bases[at].row())
		}
	}
	at, bases := 0, w.members()
	for ctx := 0; w.Bit(&s.more[ctx], false); ctx = 1 {
		for at < len(bases) && (has && bases[at].object.ID == viewer || !w.member(bases[at], false)) {
			at++
		}
		if at == len(bases) || !r.another(bases[at].object.ID, bases[at]) {
			return false
		}
		at++
	}
	id := int64(-1)
	for ctx := 2; w.Bit(&s.more[ctx], false); ctx = 3 {
		before := id
		id = w.stranger(0, before)
		if id <= before || id > 1<<16-1 || has && id == int64(viewer) {
			return false
		}
		if _, old := w.find(uint16(id)); old || !r.another(uint16(id), nil) {
			return false
		}
	}
	return !w.bad
}

// another decodes an update.
func (r *Receiver) another(id uint16, base *record) bool {
	w := &r.walk
	if len(w.out.updates) == maxUpdates {
		return false
	}
	to := w.fresh(id)
	if base != nil {
		to.of = base.of
	}
	w.update(to, base, nil)
	return !w.bad
}

// begins says whether a packet is the first that comes of a sender.
func (r *Receiver) begins(h *header) bool {
	return !r.any || h.distance == 0 && h.seq > r.newest && h.epoch-r.epoch >= newEpoch/2
}

// ordered says whether the packet's tick goes with those of the packets around it.
func (r *Receiver) ordered(h *header) error {
	if r.begins(h) {
		return nil
	}
	newest, p := r.book.get(r.newest), &r.work
	if p.seq > r.newest && p.tick <= newest.tick || p.seq < r.newest && p.tick >= newest.tick {
		return fmt.Errorf("%w: tick %d of packet %d, %d is of %d", snapshot.ErrMalformed, p.tick, uint16(p.seq), newest.tick, uint16(r.newest))
	}
	return nil
}

// count notes why a packet was refused, and asks for a new start where that would help.
func (r *Receiver) count(err error, h *header) {
	ahead := !r.any || h.seq > r.newest
	switch {
	case errors.Is(err, errDuplicate):
		r.stats.Duplicate++
	case errors.Is(err, snapshot.ErrLate):
		r.stats.Late++
	case errors.Is(err, snapshot.ErrBaselineMissing):
		r.stats.BaselineMissing++
		r.trouble = r.trouble || ahead
	case errors.Is(err, snapshot.ErrDesync):
		r.stats.Desync++
		r.trouble = true
	default:
		r.stats.Malformed++
	}
}

// take files what was decoded and makes the update of it.
func (r *Receiver) take(h *header) *Update {
	seq, ahead := h.seq, !r.any || h.seq > r.newest
	r.seen[seq%ring] = seq + 1
	r.stats.Packets++
	u := &r.update
	u.Seq, u.Tick, u.Late = uint16(seq), r.work.tick, !ahead
	if u.First = r.begins(h); u.First {
		r.inputs.clear()
	}
	r.news(u)
	if !ahead {
		r.stats.Reordered++
		r.stats.Lost -= min(r.stats.Lost, 1)
	} else if r.any {
		r.stats.Lost += seq - r.newest - 1
	}
	if ahead && h.distance == 0 && (!r.any || h.epoch != r.epoch) {
		r.book.clear(seq - min(seq, settled-1))
		r.epoch, r.trouble = h.epoch, false
	} else if ahead {
		r.forget(seq)
	}
	from := &r.work
	if ahead || seq+settled > r.newest {
		r.work.held = true
		from = r.book.put(&r.work)
	}
	if ahead {
		r.newest, r.any = seq, true
	}
	if r.book.litter {
		r.book.sweep()
	}
	u.Objects = u.Objects[:0]
	for _, o := range from.updates {
		x := ObjectUpdate{Object: o.object, Gone: o.gone}
		if !o.gone {
			x.Row = o.row()
		}
		u.Objects = append(u.Objects, x)
	}
	return u
}

// forget lets go of what no packet can refer to once a newer one is there: what is too far away for any, and what is
// before that which those referred to that are no longer held if they still come.
func (r *Receiver) forget(newest uint64) {
	for s := r.newest + 1; s <= min(newest, r.newest+ring); s++ {
		if s < settled {
			continue
		}
		if p := r.book.get(s - settled); p != nil && p.base != p.seq {
			r.book.settle(p.base)
		}
	}
	r.book.settle(newest - min(newest, farthest))
	for s := r.newest + 1; s <= min(newest, r.newest+ring); s++ {
		r.book.packets[s%ring].used = false
	}
}

// news takes the ticks of inputs that were not known.
func (r *Receiver) news(u *Update) {
	u.Inputs, r.spare = u.Inputs[:0], r.spare[:0]
	for t := r.work.from; t < r.work.to; t++ {
		o := r.ticks.slot(t)
		if !r.inputs.learn(o) {
			continue
		}
		n := len(r.spare)
		r.spare = unflatten(r.spare, r.inputs.slot(t).flat)
		u.Inputs = append(u.Inputs, TickInputs{Tick: t, Missing: !o.known, Inputs: r.spare[n:len(r.spare):len(r.spare)]})
	}
}

// Ack says what is held, for the sender.
func (r *Receiver) Ack() Ack {
	if !r.any {
		return Ack{None: true, Reset: r.trouble}
	}
	a := Ack{Reset: r.trouble, Epoch: r.epoch, Newest: uint16(r.newest)}
	for i := range min(uint64(ring-1), r.newest) {
		if p := r.book.get(r.newest - 1 - i); p != nil && p.held {
			a.Window |= 1 << i
		}
	}
	return a
}

// Stats gives the counts so far.
func (r *Receiver) Stats() ReceiverStats { return r.stats }
