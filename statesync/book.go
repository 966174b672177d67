package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

const (
	// Ring is how many packets both ends keep.
	Ring = 64
	// settled is how many packets after it a packet that still comes is no longer held: whether one was held is final by
	// then.
	settled = 8
)

// update is what a packet says of an object.
type update struct {
	object snapshot.Object
	gone   bool
}

// packet is one that was sent or decoded, with the models after it.
type packet struct {
	seq     uint64
	used    bool
	held    bool // the receiver holds it: at the sender, as acks say
	tick    int64
	updates []update // by ascending id
	notes   []int32  // of each update, see book.stride
	state   *state
	inputs  []byte // those of the newest tick that it has
	from    int64  // the ticks of inputs that it has: from up to, not including, to
	to      int64
}

// known is an object that some packet spoke of.
type known struct {
	object snapshot.Object
	in     uint64 // the slots of the ring whose packets have it
	older  bool   // whether there is one older than these that was held:
	gone   bool
	seq    uint64
	tick   int64
	notes  []int32
}

// note is what an update left: the row, how fast its components changed, and what each field's prediction missed by.
type note struct {
	object snapshot.Object
	seq    uint64
	tick   int64
	row    []int32
	trend  []int32 // steps a tick, Q8
	miss   []int32 // logarithms
}

// book is what one end keeps: the last packets, and of each object the newest update before them. Which of them count is
// said by a view.
type book struct {
	plan    *plan
	packets [Ring]packet
	known   []*known // by ascending id
	spare   []*known
}

// view says which packets count: those held up to the newest one that the sender knows of.
type view struct {
	newest uint64
	slots  uint64
}

func (b *book) stride() int { return 2*b.plan.ints + len(b.plan.fields) }

// get gives a packet, or nil.
func (b *book) get(seq uint64) *packet {
	p := &b.packets[seq%Ring]
	if !p.used || p.seq != seq {
		return nil
	}
	return p
}

// clear forgets all.
func (b *book) clear() {
	for i := range b.packets {
		b.packets[i].used = false
	}
	b.spare = append(b.spare, b.known...)
	b.known = b.known[:0]
}

// look is the view of packets up to newest: those before the last settled ones that are held, and of these those that
// recent says, bit i for the one i+1 before newest. It says false where recent names one that is not held.
func (b *book) look(newest uint64, recent uint32) (v view, ok bool) {
	v.newest = newest
	for i := range uint64(Ring) {
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
			v.slots |= 1 << ((newest - i) % Ring)
		}
	}
	return v, true
}

// find gives the place of an id among known objects, and whether it is there.
func (b *book) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(b.known, id, func(k *known, id uint16) int { return int(k.object.ID) - int(id) })
}

// latest is the newest update of an object in the view: its sequence, and whether there is one.
func (k *known) latest(v *view) (seq uint64, ok bool) {
	if c := k.in & v.slots; c != 0 {
		back := bits.LeadingZeros64(bits.RotateLeft64(c, 63-int(v.newest%Ring)))
		return v.newest - uint64(back), true
	}
	return k.seq, k.older
}

// baseline is what an update of an object can be coded against: its newest update in the view, if the object is not gone.
func (b *book) baseline(k *known, v *view) (n note, ok bool) {
	seq, ok := k.latest(v)
	if !ok {
		return n, false
	}
	if k.in&v.slots == 0 {
		return b.open(k.object, k.seq, k.tick, k.notes), !k.gone
	}
	p := &b.packets[seq%Ring]
	i, _ := p.find(k.object.ID)
	return b.open(p.updates[i].object, seq, p.tick, p.notes[i*b.stride():(i+1)*b.stride()]), !p.updates[i].gone
}

func (b *book) open(o snapshot.Object, seq uint64, tick int64, notes []int32) note {
	n := b.plan.ints
	return note{o, seq, tick, notes[:n], notes[n : 2*n], notes[2*n:]}
}

func (p *packet) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(p.updates, id, func(u update, id uint16) int { return int(u.object.ID) - int(id) })
}

// put files a packet, whose slot must be free, under its sequence, and leaves an old one in its place.
func (b *book) put(p *packet) {
	slot := &b.packets[p.seq%Ring]
	*slot, *p = *p, *slot
	slot.used = true
	for _, u := range slot.updates {
		i, ok := b.find(u.object.ID)
		if !ok {
			b.known = slices.Insert(b.known, i, b.fresh())
			b.known[i].object = u.object
		}
		b.known[i].in |= 1 << (slot.seq % Ring)
	}
}

func (b *book) fresh() *known {
	n := len(b.spare)
	if n == 0 {
		return &known{notes: make([]int32, b.stride())}
	}
	k := b.spare[n-1]
	b.spare = b.spare[:n-1]
	*k = known{notes: k.notes}
	return k
}

// evict frees a slot: what its packet says of objects becomes the update before the ring, if it was held.
func (b *book) evict(slot int) {
	p := &b.packets[slot]
	if !p.used {
		return
	}
	p.used = false
	n, drop := b.stride(), false
	for i, u := range p.updates {
		at, _ := b.find(u.object.ID)
		k := b.known[at]
		k.in &^= 1 << slot
		if p.held && (!k.older || k.seq < p.seq) {
			k.older, k.gone, k.object, k.seq, k.tick = true, u.gone, u.object, p.seq, p.tick
			copy(k.notes, p.notes[i*n:(i+1)*n])
		}
		drop = drop || k.useless()
	}
	if drop {
		b.drop()
	}
}

// useless says that nothing more is known of an object.
func (k *known) useless() bool { return k.in == 0 && (!k.older || k.gone) }

func (b *book) drop() {
	kept := b.known[:0]
	for _, k := range b.known {
		if k.useless() {
			b.spare = append(b.spare, k)
		} else {
			kept = append(kept, k)
		}
	}
	b.known = kept
}
