package perplayerstate

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
	known    []uint16       // ids of objects of which some packet had an update, ascending
	newest   table[*record] // their stored updates, linked by older
	final    uint64         // packets before it are settled
	floor    uint64         // no packet refers to one before it
	pool     pool
	states   []*modelState
	lists    [][]*record
	sweepDue bool // some known objects may be removable
}

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
		b.pool.releaseAll(b.newest.at(id))
	}
	b.known, b.sweepDue = b.known[:0], false
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

// latest returns the newest of an object's updates that is in the view, or nil.
func (b *baselineStore) latest(id uint16, v *view) *record {
	for r := *b.newest.at(id); r != nil; r = r.older {
		if r.seq < b.final || r.seq <= v.newest && v.slots>>(r.seq%ring)&1 != 0 {
			return r
		}
	}
	return nil
}

// bases appends the baselines of a view: the newest update of each object, unless it was removed.
func (b *baselineStore) bases(dst []*record, v *view) []*record {
	for _, id := range b.known {
		if r := b.latest(id, v); r != nil && !r.gone {
			dst = append(dst, r)
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
		at := b.newest.at(r.object.ID)
		if *at == nil {
			if i, ok := slices.BinarySearch(b.known, r.object.ID); !ok {
				b.known = slices.Insert(b.known, i, r.object.ID)
			}
		}
		for *at != nil && (*at).seq > r.seq {
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

// sweep removes objects without updates, and those whose removal is settled.
func (b *baselineStore) sweep() {
	if !b.sweepDue {
		return
	}
	b.sweepDue = false
	b.known = slices.DeleteFunc(b.known, func(id uint16) bool {
		at := b.newest.at(id)
		settled := *at == nil || (*at).gone && (*at).older == nil && (*at).seq < b.final
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

func (b *baselineStore) dropState(p *packet) {
	if p.state != nil && len(b.states) < maxSpareStates {
		b.states = append(b.states, p.state)
	}
	p.state = nil
}

// record is one update, at either end.
type record struct {
	object snapshot.Object
	gone   bool
	rests  bool  // at rest
	zero   bool  // all fields that are zero at rest are zero
	n      uint8 // index in its slab
	seq    uint64
	tick   int64
	older  *record // of the same object
	in     *slab
}

func (r *record) row() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at : at+r.in.row : at+r.in.row]
}

// learned returns the changes per tick of components without a velocity (Q8, see field.trend), and
// from plan.trends on log2 of each field's prediction error.
func (r *record) learned() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at+r.in.row : at+r.in.stride]
}

// slab is the memory of several records, whose size depends on the schema.
type slab struct {
	ints        []int32
	row, stride int // components of a row, and of a record
}

// pool is a list of unused records, linked by older.
type pool struct{ free *record }

// take returns a record. All of it but the row is zero.
func (l *pool) take(p *plan) *record {
	if l.free == nil {
		l.grow(p)
	}
	r := l.free
	l.free = r.older
	*r = record{in: r.in, n: r.n}
	clear(r.learned())
	return r
}

func (l *pool) grow(p *plan) {
	n := p.ints + p.trends + len(p.fields)
	records := make([]record, 32)
	in := &slab{make([]int32, len(records)*n), p.ints, n}
	for i := range records {
		records[i].in, records[i].n = in, uint8(i)
		l.release(&records[i])
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
