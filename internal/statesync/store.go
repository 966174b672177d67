package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/ringcache"
)

const (
	// ring is the number of packets that both ends store. Acks cover ring packets.
	ring = 64
	// reorderLimit is the number of newer packets after which a packet that arrives late is no
	// longer stored. Whether it was decoded is final by then.
	reorderLimit = 8
	// maxSpareStates is the maximum number of unused model states to keep.
	maxSpareStates = 8
)

type packet struct {
	seq     uint64
	held    bool // the receiver decoded the packet; at the sender, according to acks
	tick    int64
	base    uint64      // at the receiver: sequence number of the packet to which it refers
	updates []*record   // at the receiver: by ascending id, until they are settled
	sent    []identity  // at the sender: updates, until they are acked or settled
	data    []uint64    // at the sender: record.data of the updates in sent
	state   *modelState // models after the packet, while other packets may refer to it
	inputs  []byte      // inputs of its newest tick
	from    int64       // the packet contains the inputs of ticks [from, to)
	to      int64
}

// packetStore holds the packets of one end, and the models after each packet to which others may
// refer.
type packetStore struct {
	plan    *plan
	packets *ringcache.Ring[packet]
	final   uint64 // packets before this sequence number are settled
	floor   uint64 // no new packet refers to a packet before this sequence number
	states  []*modelState
}

func (b *packetStore) init(p *plan) { b.plan, b.packets = p, ringcache.New[packet](ring) }

func (b *packetStore) get(seq uint64) *packet { return b.packets.Get(seq) }

// held reports whether a packet is stored and the receiver decoded it.
func (b *packetStore) held(seq uint64) bool {
	p := b.packets.Get(seq)
	return p != nil && p.held
}

func (b *packetStore) takeState() *modelState {
	n := len(b.states)
	if n == 0 {
		return b.plan.newState()
	}
	s := b.states[n-1]
	b.states = b.states[:n-1]
	return s
}

func (b *packetStore) dropState(p *packet) {
	if p.state != nil && len(b.states) < maxSpareStates {
		b.states = append(b.states, p.state)
	}
	p.state = nil
}

// advance sets the oldest packet to which others may refer, drops the models of older packets, and
// calls f for each packet that becomes settled.
func (b *packetStore) advance(floor uint64, f func(p *packet)) {
	if floor <= b.floor {
		return
	}
	b.floor = floor
	for seq, p := range b.packets.All() {
		if seq < floor {
			b.dropState(p)
		}
	}
	to := floor - min(floor, reorderLimit-1)
	for seq := b.final; seq < min(to, b.final+ring); seq++ {
		if p := b.get(seq); p != nil {
			f(p)
		}
	}
	b.final = max(b.final, to)
}

// baselineStore holds the packets of a receiver, and the newest settled update of each object with
// all later updates. An update is settled when both ends know whether the receiver decoded it. A
// view determines which updates are baselines.
type baselineStore struct {
	packetStore
	known    []uint16       // ids of objects with stored updates, ascending
	newest   table[*record] // stored updates by object id, newest first, linked by older
	pool     pool
	lists    [][]*record
	sweepDue bool // some known objects may be removable
}

// view is the set of packets whose updates are baselines: the decoded packets up to the newest one
// that the sender knows to be decoded.
type view struct {
	newest uint64
	slots  uint64 // bit n%ring is set if packet n is in the view
}

// clear discards all packets and updates. Packets before final are settled.
func (b *baselineStore) clear(final uint64) {
	for _, p := range b.packets.All() {
		b.strip(p)
		b.dropState(p)
	}
	b.packets.Reset()
	for _, id := range b.known {
		b.pool.releaseAll(b.newest.at(id))
	}
	b.known, b.sweepDue = b.known[:0], false
	b.final = max(b.final, final)
}

// view returns the view of packets up to newest. Of the last reorderLimit packets, those in recent
// count: bit i for the packet i+1 before newest. It reports false if one of them is not stored.
func (b *baselineStore) view(newest uint64, recent uint32) (v view, ok bool) {
	if recent>>newest != 0 {
		return v, false // packets before the first one
	}
	v.newest = newest
	for i := range min(ring, newest+1) {
		held := b.held(newest - i)
		if i > 0 && i < reorderLimit {
			in := recent>>(i-1)&1 != 0
			if in && !held {
				return v, false
			}
			held = in
		}
		if held {
			v.slots |= 1 << ((newest - i) % ring)
		}
	}
	return v, true
}

// latest returns the newest of an object's updates that is in the view, or nil.
func (b *baselineStore) latest(id uint16, v *view) *record {
	for r := *b.newest.at(id); r != nil; r = r.older {
		if b.settled(r) || int32(r.seq-uint32(v.newest)) <= 0 && v.slots>>(r.seq%ring)&1 != 0 {
			return r
		}
	}
	return nil
}

func (b *baselineStore) settled(r *record) bool { return int32(r.seq-uint32(b.final)) < 0 }

// bases appends the baselines of a view: the newest update of each object, unless it was removed.
func (b *baselineStore) bases(dst []update, records []*record, v *view) ([]update, []*record) {
	for _, id := range b.known {
		if r := b.latest(id, v); r != nil && !r.gone {
			dst, records = append(dst, r.update), append(records, r)
		}
	}
	return dst, records
}

// open prepares a packet for coding.
func (b *baselineStore) open(p *packet) {
	if p.state == nil {
		p.state = b.takeState()
	}
	if n := len(b.lists); cap(p.updates) == 0 && n > 0 {
		p.updates, b.lists = b.lists[n-1], b.lists[:n-1]
	}
	b.discard(p, 0)
}

func (b *baselineStore) discard(p *packet, n int) {
	for _, r := range p.updates[n:] {
		b.pool.release(r)
	}
	p.updates = p.updates[:n]
}

// put stores a packet and sets *p to an empty one. It replaces the packet that is ring older, which
// is settled by then.
func (b *baselineStore) put(p *packet) *packet {
	slot := b.packets.Put(p.seq)
	b.strip(slot)
	b.dropState(slot)
	*slot, *p = *p, packet{inputs: slot.inputs[:0]}
	for _, r := range slot.updates {
		at := b.newest.at(r.object.ID)
		if *at == nil {
			if i, ok := slices.BinarySearch(b.known, r.object.ID); !ok {
				b.known = slices.Insert(b.known, i, r.object.ID)
			}
		}
		for *at != nil && int32((*at).seq-r.seq) > 0 {
			at = &(*at).older
		}
		r.older, *at = *at, r
	}
	return slot
}

// settle sets the oldest packet to which others may refer. Older models and updates are discarded
// unless they are baselines.
func (b *baselineStore) settle(floor uint64) {
	b.advance(floor, func(p *packet) {
		for _, r := range p.updates {
			b.settleRecord(r, p.held)
		}
		b.strip(p)
	})
}

// settleRecord settles r. If held is set, it discards the older updates of the object, and
// otherwise r.
func (b *baselineStore) settleRecord(r *record, held bool) {
	newest := b.newest.at(r.object.ID)
	if held {
		b.pool.releaseAll(&r.older)
	} else {
		at := newest
		for *at != r {
			at = &(*at).older
		}
		*at = r.older
		b.pool.release(r)
	}
	b.sweepDue = b.sweepDue || *newest == nil || (*newest).gone && (*newest).older == nil
}

// sweep removes objects without updates and objects whose removal is settled.
func (b *baselineStore) sweep() {
	if !b.sweepDue {
		return
	}
	b.sweepDue = false
	b.known = slices.DeleteFunc(b.known, func(id uint16) bool {
		at := b.newest.at(id)
		r := *at
		settled := r == nil || r.gone && r.older == nil && b.settled(r)
		if settled {
			b.pool.releaseAll(at)
		}
		return settled
	})
}

func (b *baselineStore) strip(p *packet) {
	if cap(p.updates) > 0 {
		b.lists = append(b.lists, p.updates[:0])
		p.updates = nil
	}
}

// record is the update of one object, at either end.
type record struct {
	older *record // at the receiver: the next older update of the same object
	data  []uint64
	update
}

// update is the part of a record without the state of the object.
type update struct {
	seq  uint32 // low 32 bits
	tick uint32 // low 32 bits
	identity
}

// identity is the part of an update that differs between the updates of a packet.
type identity struct {
	object snapshot.Object
	gone   bool
	rests  bool // the object is at rest
	zero   bool // all fields in plan.zeroAtRest are zero
}

const slabSize = 32

// pool is a list of unused records, linked by older.
type pool struct{ free *record }

// take returns a record whose data are undefined.
func (l *pool) take(p *plan) *record {
	if l.free == nil {
		records, data := make([]record, slabSize), make([]uint64, slabSize*p.stride)
		for i := range records {
			records[i].data = data[i*p.stride : (i+1)*p.stride : (i+1)*p.stride]
			l.release(&records[i])
		}
	}
	r := l.free
	l.free = r.older
	*r = record{data: r.data}
	return r
}

func (l *pool) release(r *record) { r.older, l.free = l.free, r }

// releaseAll releases a record and the older ones of the same object, and sets *r to nil.
func (l *pool) releaseAll(r **record) {
	for *r != nil {
		older := (*r).older
		l.release(*r)
		*r = older
	}
}

func (p *packet) sort() {
	slices.SortFunc(p.updates, func(a, b *record) int { return int(a.object.ID) - int(b.object.ID) })
}
