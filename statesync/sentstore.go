package statesync

import "slices"

// sentStore holds what a sender stores: besides packets, the newest update of each object that the
// receiver is known to have, which is its baseline. It needs the updates of a packet only until the
// packet is acked or settled.
type sentStore struct {
	packetStore
	objects table[sendState]
	data    [256][]uint64 // of the baselines, by pages of objects
	live    []uint16      // objects that the receiver may have, ascending
	bases   []baseline
	stale   bool // bases is not up to date
	spares  []packet
}

type sendState struct {
	sum            float64   // of the accumulator
	movingPriority float64   // priority when the object last moved
	base           update    // if based
	index          int32     // of base in sentStore.bases, unless that is stale
	goneSent       uint32    // sequence number + 1 of the last packet with its removal, low bits; or 0
	bits           [2]uint16 // size of its last update without and with a baseline, in needUnit; or 0
	compared       uint16    // low bits + 1 of base.seq when the state at rest was compared with it, or 0
	live           bool      // the receiver may have the object
	based          bool      // there is an update that the receiver has, perhaps a removal
}

// hasBase reports whether the object has a baseline.
func (o *sendState) hasBase() bool { return o.based && !o.base.gone }

// open prepares a packet for coding.
func (b *sentStore) open(p *packet) {
	if p.state == nil {
		p.state = b.takeState()
	}
	b.discard(p, 0)
}

func (b *sentStore) discard(p *packet, n int) { p.sent, p.data = p.sent[:n], p.data[:n*b.plan.stride] }

// add adds the data of an update to a packet and sets r to it.
func (b *sentStore) add(p *packet, id uint16, r *record) {
	n := len(p.data)
	p.data = slices.Grow(p.data, b.plan.stride)[:n+b.plan.stride]
	*r = record{data: p.data[n : n+b.plan.stride : n+b.plan.stride]}
	r.object.ID, r.seq, r.tick = id, uint32(p.seq), uint32(p.tick)
}

// put stores a copy of a packet, without memory to spare, and empties it. The packet a whole ring
// older is settled.
func (b *sentStore) put(p *packet) {
	slot := b.packets.Put(p.seq)
	b.strip(slot)
	b.dropState(slot)
	var spare packet
	if n := len(b.spares); n > 0 {
		spare, b.spares = b.spares[n-1], b.spares[:n-1]
	}
	sent, data, inputs := copyOf(spare.sent, p.sent), copyOf(spare.data, p.data), append(slot.inputs[:0], p.inputs...)
	*slot = *p
	slot.sent, slot.data, slot.inputs = sent, data, inputs
	p.state = nil
}

// copyOf returns a copy of from, in the memory of to if that has room.
func copyOf[T any](to, from []T) []T {
	if cap(to) < len(from) {
		to = make([]T, 0, len(from)+len(from)/8)
	}
	return append(to[:0], from...)
}

// strip drops the updates of a packet.
func (b *sentStore) strip(p *packet) {
	if cap(p.sent) > 0 {
		b.spares = append(b.spares, packet{sent: p.sent[:0], data: p.data[:0]})
		p.sent, p.data = nil, nil
	}
}

// hold records that the receiver decoded a packet.
func (b *sentStore) hold(p *packet) {
	p.held = true
	for i := range p.sent {
		r := update{uint32(p.seq), uint32(p.tick), p.sent[i]}
		o := b.objects.at(r.object.ID)
		if o.based && int32(r.seq-o.base.seq) < 0 {
			continue
		}
		if o.hasBase() && !r.gone && !b.stale {
			b.bases[o.index] = baseline{r.seq, r.object.ID, r.rests}
		} else {
			b.stale = true
		}
		if o.base, o.based = r, true; !r.gone {
			b.setLive(o, r.object.ID) // an update after a removal was acked before
		}
		copy(b.dataOf(r.object.ID), p.data[i*b.plan.stride:(i+1)*b.plan.stride])
	}
	b.strip(p)
}

// setLive records that the receiver may have an object.
func (b *sentStore) setLive(o *sendState, id uint16) {
	if !o.live {
		o.live = true
		i, _ := slices.BinarySearch(b.live, id)
		b.live = slices.Insert(b.live, i, id)
	}
}

// settle sets the oldest packet to which others may refer.
func (b *sentStore) settle(floor uint64) { b.advance(floor, b.strip) }

// clear discards everything. Packets before final are settled.
func (b *sentStore) clear(final uint64) {
	for _, p := range b.packets.All() {
		b.strip(p)
		b.dropState(p)
	}
	b.packets.Reset()
	for _, id := range b.live {
		b.objects.at(id).based = false
	}
	b.bases, b.stale = b.bases[:0], false
	b.final = max(b.final, final)
}

// list returns the baselines by ascending id, until the next change.
func (b *sentStore) list() []baseline {
	if !b.stale {
		return b.bases
	}
	b.bases, b.stale = slices.Grow(b.bases[:0], len(b.live)), false
	for _, id := range b.live {
		if o := b.objects.at(id); o.hasBase() {
			o.index = int32(len(b.bases))
			b.bases = append(b.bases, baseline{o.base.seq, id, o.base.rests})
		}
	}
	return b.bases
}

// load sets r to the baseline of an object.
func (b *sentStore) load(id uint16, r *record) {
	r.data, r.update = b.dataOf(id), b.objects.at(id).base
}

func (b *sentStore) dataOf(id uint16) []uint64 {
	page, n := &b.data[id>>8], b.plan.stride
	if *page == nil {
		*page = make([]uint64, 256*n)
	}
	at := int(id&255) * n
	return (*page)[at : at+n : at+n]
}
