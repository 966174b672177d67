package statesync

import "slices"

// sentStore holds the packets of a sender and the baseline of each object: the newest update that
// the receiver is known to have. The updates of a packet are stored only until the packet is acked
// or settled.
type sentStore struct {
	packetStore
	objects table[sendState]
	removed table[uint32] // sequence number of the newest acked removal; read only if the object has no baseline
	data    [256][]uint64 // record.data of the baselines, by high and low byte of the id
	live    []uint16      // objects that the receiver may have, ascending
	bases   []update      // baselines by ascending id
	stale   bool          // sendState.base is not up to date
	spares  []packet
}

// sendState holds the state of an object apart from its baseline. The sender reads it for every
// object in each tick; its size is half a cache line.
type sendState struct {
	sum            float64   // accumulated priority
	movingPriority float64   // priority when the object last moved
	base           int32     // index + 1 of its baseline in sentStore.bases, or 0 if it has none; see sentStore.stale
	goneSent       uint32    // sequence number + 1 of the last packet with its removal, low bits; or 0
	bits           [2]uint16 // size of its last update without and with a baseline, in needUnit; or 0
	live           bool      // the receiver may have the object
	based          bool      // the receiver has acked an update of the object, possibly a removal
	rests          bool      // the object is at rest in its baseline
	compared       bool      // the state at rest has been compared with the baseline
}

// open prepares a packet for coding.
func (b *sentStore) open(p *packet) {
	if p.state == nil {
		p.state = b.takeState()
	}
	b.discard(p, 0)
}

func (b *sentStore) discard(p *packet, n int) { p.sent, p.data = p.sent[:n], p.data[:n*b.plan.stride] }

// add adds the data of an update to a packet and sets r to the new record.
func (b *sentStore) add(p *packet, id uint16, r *record) {
	n := len(p.data)
	p.data = slices.Grow(p.data, b.plan.stride)[:n+b.plan.stride]
	*r = record{data: p.data[n : n+b.plan.stride : n+b.plan.stride]}
	r.object.ID, r.seq, r.tick = id, uint32(p.seq), uint32(p.tick)
}

// put stores a compact copy of a packet and empties p. It replaces the packet that is ring older,
// which is settled by then.
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

// copyOf returns a copy of from, in the memory of to if its capacity suffices.
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

// hold records that the receiver decoded a packet, and makes its updates baselines.
func (b *sentStore) hold(p *packet) {
	p.held = true
	for i := range p.sent {
		r := update{uint32(p.seq), uint32(p.tick), p.sent[i]}
		id := r.object.ID
		if o := b.objects.at(id); b.setBase(o, &r) {
			o.based, o.rests, o.compared = true, r.rests, false
			copy(b.dataOf(id), p.data[i*b.plan.stride:(i+1)*b.plan.stride])
		}
	}
	b.strip(p)
}

// setBase makes an update the baseline of its object. It reports false if the receiver has a newer
// update.
func (b *sentStore) setBase(o *sendState, r *update) bool {
	at, id := int(o.base-1), r.object.ID
	if b.stale || o.base == 0 {
		at, _ = slices.BinarySearchFunc(b.bases, id, compareID)
	}
	switch {
	case o.base > 0 && int32(r.seq-b.bases[at].seq) < 0:
		return false
	case o.base > 0 && r.gone:
		b.bases = slices.Delete(b.bases, at, at+1)
		o.base, b.stale = 0, true
	case o.base > 0:
		b.bases[at] = *r
	case o.based && int32(r.seq-*b.removed.at(id)) < 0:
		return false
	case !r.gone:
		b.bases = slices.Insert(b.bases, at, *r)
		o.base, b.stale = 1, true
		b.setLive(o, id) // an update after a removal was acked before
	}
	if r.gone {
		*b.removed.at(id) = r.seq
	}
	return true
}

func compareID(u update, id uint16) int { return int(u.object.ID) - int(id) }

// setLive records that the receiver may have an object.
func (b *sentStore) setLive(o *sendState, id uint16) {
	if !o.live {
		o.live = true
		i, _ := slices.BinarySearch(b.live, id)
		b.live = slices.Insert(b.live, i, id)
	}
}

// settle sets the oldest packet to which others may refer, and discards the updates of settled
// packets.
func (b *sentStore) settle(floor uint64) { b.advance(floor, b.strip) }

// clear discards all packets and baselines. Packets before final are settled.
func (b *sentStore) clear(final uint64) {
	for _, p := range b.packets.All() {
		b.strip(p)
		b.dropState(p)
	}
	b.packets.Reset()
	for _, id := range b.live {
		o := b.objects.at(id)
		o.base, o.based, o.rests = 0, false, false
	}
	b.bases, b.stale = b.bases[:0], false
	b.final = max(b.final, final)
}

// list returns the baselines by ascending id, until the next change.
func (b *sentStore) list() []update {
	if b.stale {
		b.stale = false
		for i := range b.bases {
			b.objects.at(b.bases[i].object.ID).base = int32(i + 1)
		}
	}
	return b.bases
}

// load sets r to the baseline with index at.
func (b *sentStore) load(at int32, r *record) {
	r.update = b.bases[at]
	r.data = b.dataOf(r.object.ID)
}

func (b *sentStore) dataOf(id uint16) []uint64 {
	page, n := &b.data[id>>8], b.plan.stride
	if *page == nil {
		*page = make([]uint64, 256*n)
	}
	at := int(id&255) * n
	return (*page)[at : at+n : at+n]
}
