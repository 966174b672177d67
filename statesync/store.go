package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/snapshot"
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
	held    bool // the receiver decoded it: at the sender, as acks report
	tick    int64
	base    uint64      // at the receiver: the packet that it refers to
	updates []*record   // by ascending id, until they are settled
	state   *modelState // models after it, while packets may refer to it
	inputs  []byte      // those of its newest tick
	from    int64       // it contains the inputs of ticks from up to, not including, to
	to      int64
}

// baselineStore holds the data that one end stores: the newest settled update of each object and
// those after it, and the models after each packet to which others may refer. An update is settled
// when both ends know whether the receiver decoded it. A view determines which updates are
// baselines.
type baselineStore struct {
	plan     *plan
	packets  *ringcache.Ring[packet]
	known    []uint16 // ids of objects of which some packet had an update, ascending
	objects  table[stored]
	acked    []baseline // at the sender: result of heldBases
	stale    bool       // acked is not up to date
	final    uint64     // packets before it are settled
	floor    uint64     // no packet refers to one before it
	pool     pool
	states   []*modelState
	lists    [][]*record
	sweepDue bool // some known objects may be removable
}

// stored are the stored updates of an object.
type stored struct {
	newest *record // and the older ones
	base   *record // at the sender: the newest one that the receiver has
	index  int32   // of base among those of heldBases
}

// baseline is a record and what is coded about each baseline.
type baseline struct {
	*record
	seq   uint32
	id    uint16
	rests bool
}

func baselineOf(r *record) baseline { return baseline{r, r.seq, r.object.ID, r.rests} }

func (b *baselineStore) init(p *plan) { b.plan, b.packets = p, ringcache.New[packet](ring) }

// view is the set of packets whose updates are baselines: those that the receiver decoded, up to
// the newest one that the sender knows of.
type view struct {
	newest uint64
	slots  uint64 // by sequence number modulo ring
}

func (b *baselineStore) get(seq uint64) *packet { return b.packets.Get(seq) }

// held reports whether a packet is stored that the receiver decoded.
func (b *baselineStore) held(seq uint64) bool {
	p := b.packets.Get(seq)
	return p != nil && p.held
}

// clear discards everything. Packets before final are settled.
func (b *baselineStore) clear(final uint64) {
	for _, p := range b.packets.All() {
		b.strip(p)
		b.dropState(p)
	}
	b.packets.Reset()
	for _, id := range b.known {
		o := b.objects.at(id)
		b.pool.releaseAll(&o.newest)
		o.base = nil
	}
	b.known, b.sweepDue, b.stale = b.known[:0], false, true
	b.final = max(b.final, final)
}

// view returns the view of packets up to newest. Of the last reorderLimit packets, those in recent
// count: bit i for the packet i+1 before newest. It reports false if one of them is not stored.
func (b *baselineStore) view(newest uint64, recent uint32) (v view, ok bool) {
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

// hold records that the receiver decoded a packet, at the sender.
func (b *baselineStore) hold(p *packet) {
	p.held = true
	for _, r := range p.updates {
		o := b.objects.at(r.object.ID)
		switch {
		case o.base != nil && int32(r.seq-o.base.seq) < 0:
			continue
		case o.base == nil || o.base.gone || r.gone || b.stale:
			b.stale = true
		default:
			b.acked[o.index] = baselineOf(r)
		}
		o.base = r
	}
}

// heldBases returns the baselines of the view of all packets that the receiver decoded, like bases,
// until the next change.
func (b *baselineStore) heldBases() []baseline {
	if !b.stale {
		return b.acked
	}
	b.acked, b.stale = b.acked[:0], false
	for _, id := range b.known {
		if o := b.objects.at(id); o.base != nil && !o.base.gone {
			o.index = int32(len(b.acked))
			b.acked = append(b.acked, baselineOf(o.base))
		}
	}
	return b.acked
}

// latest returns the newest of an object's updates that is in the view, or nil.
func (b *baselineStore) latest(id uint16, v *view) *record {
	for r := b.objects.at(id).newest; r != nil; r = r.older {
		if b.settled(r) || int32(r.seq-uint32(v.newest)) <= 0 && v.slots>>(r.seq%ring)&1 != 0 {
			return r
		}
	}
	return nil
}

func (b *baselineStore) settled(r *record) bool { return int32(r.seq-uint32(b.final)) < 0 }

// bases appends the baselines of a view: the newest update of each object, unless it was removed.
func (b *baselineStore) bases(dst []baseline, v *view) []baseline {
	for _, id := range b.known {
		if r := b.latest(id, v); r != nil && !r.gone {
			dst = append(dst, baselineOf(r))
		}
	}
	return dst
}

// open prepares a packet for coding.
func (b *baselineStore) open(p *packet) {
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

func (b *baselineStore) discard(p *packet, n int) {
	for _, r := range p.updates[n:] {
		b.pool.release(r)
	}
	p.updates = p.updates[:n]
}

// put stores a packet and sets *p to an empty one. The packet a whole ring older is settled.
func (b *baselineStore) put(p *packet) *packet {
	slot := b.packets.Put(p.seq)
	b.strip(slot)
	b.dropState(slot)
	*slot, *p = *p, packet{inputs: slot.inputs[:0]}
	for _, r := range slot.updates {
		at := &b.objects.at(r.object.ID).newest
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
		p := b.get(seq)
		if p == nil {
			continue
		}
		for _, r := range p.updates {
			b.settleRecord(r, p.held)
		}
		b.strip(p)
	}
	b.final = max(b.final, to)
}

// settleRecord discards the updates before r if the receiver has r, and otherwise r.
func (b *baselineStore) settleRecord(r *record, held bool) {
	newest := &b.objects.at(r.object.ID).newest
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

// sweep removes objects without updates, and those whose removal is settled.
func (b *baselineStore) sweep() {
	if !b.sweepDue {
		return
	}
	b.sweepDue = false
	b.known = slices.DeleteFunc(b.known, func(id uint16) bool {
		o := b.objects.at(id)
		r := o.newest
		settled := r == nil || r.gone && r.older == nil && b.settled(r)
		if settled {
			b.pool.releaseAll(&o.newest)
			o.base = nil
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

func (b *baselineStore) dropState(p *packet) {
	if p.state != nil && len(b.states) < maxSpareStates {
		b.states = append(b.states, p.state)
	}
	p.state = nil
}

// record is one update, at either end.
type record struct {
	older  *record // of the same object
	in     *slab
	seq    uint32 // low bits
	tick   uint32 // low bits
	object snapshot.Object
	n      uint8 // index in its slab
	gone   bool
	rests  bool // at rest
	zero   bool // all fields that are zero at rest are zero
}

// words returns the packed row.
func (r *record) words() []uint64 {
	at, n := int(r.n)*r.in.stride, r.in.plan.words
	return r.in.data[at : at+n : at+n]
}

// misses returns the logarithm of each field's residual, see missShift, eight in each element.
func (r *record) misses() []uint64 {
	at := int(r.n) * r.in.stride
	return r.in.data[at+r.in.plan.words : at+r.in.stride : at+r.in.stride]
}

// trends returns the changes per tick of components with a trend (Q8), see field.trend.
func (r *record) trends() []int32 {
	at, n := int(r.n)*r.in.plan.trends, r.in.plan.trends
	return r.in.changes[at : at+n : at+n]
}

// slab is the memory of several records, whose size depends on the schema.
type slab struct {
	plan    *plan
	stride  int
	data    []uint64 // packed rows, each followed by misses
	changes []int32
	records [slabSize]record
}

const slabSize = 32

// pool is a list of unused records, linked by older.
type pool struct{ free *record }

// take returns a record. All of it but the row and misses is zero.
func (l *pool) take(p *plan) *record {
	if l.free == nil {
		l.grow(p)
	}
	r := l.free
	l.free = r.older
	*r = record{in: r.in, n: r.n}
	if p.trends > 0 {
		clear(r.trends())
	}
	return r
}

func (l *pool) grow(p *plan) {
	stride := p.words + (len(p.fields)+7)/8
	in := &slab{plan: p, stride: stride, data: make([]uint64, slabSize*stride), changes: make([]int32, slabSize*p.trends)}
	for i := range in.records {
		in.records[i].in, in.records[i].n = in, uint8(i)
		l.release(&in.records[i])
	}
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
