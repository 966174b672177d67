package statesync

import "slices"

const (
	// ring is how many packets acks tell of, and how many a packet may be away from the one it refers to, less some.
	ring = 64
	// settled is how many packets after it a packet that still comes is no longer held: whether one was held is final by
	// then.
	settled = 8
	// spareStates is how many states that are not in use are kept.
	spareStates = 8
)

// packet is one that was sent or decoded.
type packet struct {
	seq     uint64
	used    bool
	held    bool // the receiver holds it: at the sender, as acks say
	tick    int64
	base    uint64    // at the receiver: the packet that it refers to
	updates []*record // by ascending id, until they are settled
	state   *state    // the models after it, as long as a packet may refer to it
	inputs  []byte    // those of the newest tick that it has
	from    int64     // the ticks of inputs that it has: from up to, not including, to
	to      int64
}

// known is an object that some packet spoke of.
type known struct {
	id     uint16
	newest *record
}

// book is what one end keeps: of each object the newest update that is settled and those after it, and the models after
// each packet that may still be referred to. Which updates count is said by a view.
type book struct {
	plan    *plan
	packets [ring]packet
	known   []*known // by ascending id
	final   uint64   // of packets before it, it is settled whether they are held
	floor   uint64   // no packet refers to one before it
	pool    pool
	states  []*state
	lists   [][]*record
	spare   []*known
	litter  bool // there may be something to sweep
}

// view says which packets count: those held up to the newest one that the sender knows of.
type view struct {
	newest uint64
	slots  uint64
}

// get gives a packet, or nil.
func (b *book) get(seq uint64) *packet {
	p := &b.packets[seq%ring]
	if !p.used || p.seq != seq {
		return nil
	}
	return p
}

// clear forgets all; no packet before final will come any more.
func (b *book) clear(final uint64) {
	for i := range b.packets {
		p := &b.packets[i]
		p.used = false
		b.strip(p)
		b.dropState(p)
	}
	for _, k := range b.known {
		b.pool.giveAll(k.newest)
		k.newest = nil
	}
	b.sweep()
	b.final = max(b.final, final)
}

// look is the view of packets up to newest: those before the last settled ones that are held, and of these those that
// recent says, bit i for the one i+1 before newest. It says false where recent names one that is not held.
func (b *book) look(newest uint64, recent uint32) (v view, ok bool) {
	v.newest = newest
	for i := range uint64(ring) {
		if i > newest {
			break
		}
		p := b.get(newest - i)
		held := p != nil && p.held
		if i > 0 && i < settled {
			said := recent>>(i-1)&1 != 0
			if said && !held {
				return v, false
			}
			held = said
		}
		if held {
			v.slots |= 1 << ((newest - i) % ring)
		}
	}
	return v, true
}

// find gives the place of an id among known objects, and whether it is there.
func (b *book) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(b.known, id, func(k *known, id uint16) int { return int(k.id) - int(id) })
}

// latest is the newest update of an object in the view, or nil.
func (b *book) latest(k *known, v *view) *record {
	for r := k.newest; r != nil; r = r.older {
		if r.seq < b.final || r.seq <= v.newest && v.slots>>(r.seq%ring)&1 != 0 {
			return r
		}
	}
	return nil
}

// bases appends what updates of objects can be coded against: the newest of each in the view, unless the object is gone.
func (b *book) bases(dst []*record, v *view) []*record {
	for _, k := range b.known {
		if r := b.latest(k, v); r != nil && !r.gone {
			dst = append(dst, r)
		}
	}
	return dst
}

// open readies a packet for being coded.
func (b *book) open(p *packet) {
	if n := len(b.states); p.state == nil && n > 0 {
		p.state, b.states = b.states[n-1], b.states[:n-1]
	} else if p.state == nil {
		p.state = b.plan.newState()
	}
	if n := len(b.lists); cap(p.updates) == 0 && n > 0 {
		p.updates, b.lists = b.lists[n-1], b.lists[:n-1]
	}
	b.discard(p, 0)
}

// discard forgets the updates from the n-th on of a packet that was not put.
func (b *book) discard(p *packet, n int) {
	for _, r := range p.updates[n:] {
		b.pool.give(r)
	}
	p.updates = p.updates[:n]
}

// put files a packet under its sequence, and leaves an empty one in its place. What was in its slot is settled.
func (b *book) put(p *packet) *packet {
	slot := &b.packets[p.seq%ring]
	b.strip(slot)
	b.dropState(slot)
	*slot, *p = *p, packet{inputs: slot.inputs[:0]}
	slot.used = true
	for _, r := range slot.updates {
		k := r.of
		if k == nil {
			i, ok := b.find(r.object.ID)
			if !ok {
				b.known = slices.Insert(b.known, i, b.fresh(r.object.ID))
			}
			k = b.known[i]
		}
		b.link(k, r)
	}
	return slot
}

// link files a record under its object, those of later packets before it.
func (b *book) link(k *known, r *record) {
	at := &k.newest
	for *at != nil && (*at).seq > r.seq {
		at = &(*at).older
	}
	r.of, r.older, *at = k, *at, r
}

func (b *book) fresh(id uint16) *known {
	n := len(b.spare)
	if n == 0 {
		return &known{id: id}
	}
	k := b.spare[n-1]
	b.spare = b.spare[:n-1]
	*k = known{id: id}
	return k
}

// settle says that no packet will refer to one before floor: models before it go, and so do rows that nothing can be told
// from any more.
func (b *book) settle(floor uint64) {
	if floor <= b.floor {
		return
	}
	b.floor = floor
	for i := range b.packets {
		if p := &b.packets[i]; p.used && p.seq < floor {
			b.dropState(p)
		}
	}
	to := floor - min(floor, settled-1)
	for seq := b.final; seq < min(to, b.final+ring); seq++ {
		p := b.get(seq)
		if p == nil {
			continue
		}
		for _, r := range p.updates {
			b.fold(r, p.held)
		}
		b.strip(p)
	}
	b.final = max(b.final, to)
}

// fold settles a record: what is older goes if it counts, and it goes itself if not.
func (b *book) fold(r *record, held bool) {
	k := r.of
	if held {
		b.pool.giveAll(r.older)
		r.older = nil
	} else {
		at := &k.newest
		for *at != r {
			at = &(*at).older
		}
		*at = r.older
		b.pool.give(r)
	}
	b.litter = b.litter || k.newest == nil || k.newest.gone && k.newest.older == nil
}

// sweep drops objects of which nothing is known any more, or for good that they are gone.
func (b *book) sweep() {
	b.litter = false
	kept := b.known[:0]
	for _, k := range b.known {
		if r := k.newest; r == nil || r.gone && r.older == nil && r.seq < b.final {
			b.pool.giveAll(r)
			b.spare = append(b.spare, k)
			continue
		}
		kept = append(kept, k)
	}
	b.known = kept
}

// strip takes a packet's list of updates, which are no longer its own.
func (b *book) strip(p *packet) {
	if cap(p.updates) > 0 {
		b.lists = append(b.lists, p.updates[:0])
		p.updates = nil
	}
}

func (b *book) dropState(p *packet) {
	if p.state != nil && len(b.states) < spareStates {
		b.states = append(b.states, p.state)
	}
	p.state = nil
}
