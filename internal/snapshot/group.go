package snapshot

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// MaxGroup is the maximum number of objects of a [Group]. Slot numbers therefore fit into 16 bits
// even if each of [Ring] snapshots replaces all objects.
const MaxGroup = 1000

// Group stores objects of a world that are coded together, for the newest [Ring] snapshots. An
// earlier row is stored only if it differs from the next one. Put and Commit must not run
// concurrently with each other or with readers.
type Group struct {
	schema  *Schema
	first   uint64       // number of the first snapshot
	next    uint64       // number of the next snapshot
	changed uint64       // bit n%Ring is set if snapshot n differs from snapshot n-1
	lists   []objectList // lists of objects, oldest first; each is valid until the next one
	rows    []int32      // newest row of each slot, schema.ints components each
	changes []uint64     // by slot: bit n%Ring is set if the object was added or changed in snapshot n
	before  [][]int32    // by slot: the row before the change in snapshot n, at n%Ring; nil if there are no changes
	open    objectList   // objects that were put into the next snapshot
	at      int          // position in the newest list from which Put searches
	left    []departure  // oldest first
	free    []uint16     // unused slots
	blocks  [][]int32    // unused memory for elements of before
	lows    []low        // minimum positions, oldest first
}

// objectList lists the objects of a group from one snapshot up to the next list.
type objectList struct {
	from    uint64
	objects []Object
	slots   []uint16 // slot of each object
	ids     fnv.Hash // hash of objects
}

// low holds the minimum of each position component, from one snapshot up to the next low.
type low struct {
	from uint64
	at   [3]int64
}

// departure records that snapshot n removed the object of a slot.
type departure struct {
	n    uint64
	slot uint16
}

// Put adds a copy of an object to the next snapshot. Its id must be higher than all others there,
// and each component within the bounds of its field. After an error the snapshot is unchanged. Put
// does not allocate once warm.
func (p *Group) Put(o Object, row []int32) error {
	if n := len(p.open.objects); n >= MaxGroup {
		return fmt.Errorf("snapshot: object %d: the group has %d objects, want at most %d", o.ID, n, MaxGroup)
	}
	if err := p.schema.checkNext(p.open.objects, o, row); err != nil {
		return err
	}
	at, known := p.follow(o)
	if !known || !slices.Equal(p.row(at), row) {
		if err := p.schema.check(o.ID, row); err != nil {
			return err
		}
		if known {
			p.keep(at)
		} else {
			at = p.newSlot()
		}
		copy(p.row(at), row)
		p.changes[at] |= 1 << (p.next % Ring)
		p.changed |= 1 << (p.next % Ring)
	}
	p.open.objects, p.open.slots = append(p.open.objects, o), append(p.open.slots, at)
	return nil
}

// follow returns the slot of an object of the newest snapshot. Calls must be in ascending order of
// ids.
func (p *Group) follow(o Object) (at uint16, ok bool) {
	if len(p.lists) == 0 {
		return 0, false
	}
	newest := &p.lists[len(p.lists)-1]
	i := follow(newest.objects, &p.at, o)
	if i < 0 {
		return 0, false
	}
	return newest.slots[i], true
}

// row returns the newest row of a slot.
func (p *Group) row(at uint16) []int32 {
	n := p.schema.ints
	return p.rows[int(at)*n:][:n:n]
}

// newSlot returns an unused slot.
func (p *Group) newSlot() uint16 {
	if k := len(p.free) - 1; k >= 0 {
		at := p.free[k]
		p.free = p.free[:k]
		return at
	}
	p.rows = append(p.rows, make([]int32, p.schema.ints)...)
	p.changes, p.before = append(p.changes, 0), append(p.before, nil)
	return uint16(len(p.changes) - 1)
}

// keep stores the newest row of a slot before the next snapshot changes it.
func (p *Group) keep(at uint16) {
	before := &p.before[at]
	if *before == nil {
		if k := len(p.blocks) - 1; k >= 0 {
			*before, p.blocks = p.blocks[k], p.blocks[:k]
		} else {
			*before = make([]int32, Ring*p.schema.ints)
		}
	}
	copy((*before)[p.place(p.next):], p.row(at))
}

// Commit completes the next snapshot: its objects are those that were put since the last Commit.
func (p *Group) Commit() {
	n := p.next
	p.commitList(n)
	if p.changed>>(n%Ring)&1 != 0 {
		if at := p.lowest(); len(p.lows) == 0 || p.lows[len(p.lows)-1].at != at {
			p.lows = append(p.lows, low{n, at})
		}
	}
	p.discard(n + 1)
	p.next, p.at = n+1, 0
}

// discard discards lists, rows and slots that only snapshots up to n-Ring use.
func (p *Group) discard(n uint64) {
	for len(p.lists) > 1 && p.lists[1].from+Ring <= n {
		if cap(p.open.objects) == 0 {
			p.open.objects, p.open.slots = p.lists[0].objects[:0], p.lists[0].slots[:0]
		}
		p.lists = slices.Delete(p.lists, 0, 1)
	}
	for len(p.lows) > 1 && p.lows[1].from+Ring <= n {
		p.lows = slices.Delete(p.lows, 0, 1)
	}
	for len(p.left) > 0 && p.left[0].n+Ring <= n {
		at := p.left[0].slot
		p.changes[at] = 0
		p.left, p.free = slices.Delete(p.left, 0, 1), append(p.free, at)
	}
	keep := ^(uint64(1) << (n % Ring))
	p.changed &= keep
	for i := range p.changes {
		if p.changes[i] &= keep; p.changes[i] == 0 && p.before[i] != nil {
			p.before[i], p.blocks = nil, append(p.blocks, p.before[i])
		}
	}
}

// commitList adds the open list for snapshot n, unless the objects are those of the newest list.
func (p *Group) commitList(n uint64) {
	k := len(p.lists)
	if k > 0 && sameList(p.open.objects, p.lists[k-1].objects) {
		p.open.objects, p.open.slots = p.open.objects[:0], p.open.slots[:0]
		return
	}
	p.changed |= 1 << (n % Ring)
	p.open.from, p.open.ids = n, idsOf(p.open.objects)
	if k > 0 {
		before, at := &p.lists[k-1], 0
		for i, o := range before.objects {
			if follow(p.open.objects, &at, o) < 0 {
				p.left = append(p.left, departure{n, before.slots[i]})
			}
		}
	}
	p.lists, p.open = append(p.lists, p.open), objectList{}
}

// lowest returns the minimum components of the newest positions.
func (p *Group) lowest() (at [3]int64) {
	for i, slot := range p.lists[len(p.lists)-1].slots {
		x, y, z := p.schema.position(p.row(slot))
		if i == 0 {
			at = [3]int64{x, y, z}
		}
		at[0], at[1], at[2] = min(at[0], x), min(at[1], y), min(at[2], z)
	}
	return at
}

// lowestAt returns the minimum components of the positions of snapshot n.
func (p *Group) lowestAt(n uint64) [3]int64 {
	k := len(p.lows) - 1
	for k > 0 && p.lows[k].from > n {
		k--
	}
	return p.lows[k].at
}

// Has reports whether the group stores snapshot n.
func (p *Group) Has(n uint64) bool { return n >= p.first && n < p.next && n+Ring >= p.next }

// Same reports whether the newest snapshot is equal to snapshot n, which the group has.
func (p *Group) Same(n uint64) bool { return p.since(p.changed, n) == 0 }

// since returns the bits of changes for the snapshots after n: bit i is for snapshot n+1+i.
func (p *Group) since(changes, n uint64) uint64 {
	age := p.next - 1 - n
	return bits.RotateLeft64(changes, -int(p.next%Ring)) >> (Ring - age)
}

// place returns the offset into an element of before of the row that snapshot n changed.
func (p *Group) place(n uint64) int { return int(n%Ring) * p.schema.ints }

// rowAt returns the row of a slot in snapshot n.
func (p *Group) rowAt(slot uint16, n uint64) []int32 {
	since := uint64(0)
	if n+1 < p.next {
		since = p.since(p.changes[slot], n)
	}
	if since == 0 {
		return p.row(slot)
	}
	width := p.schema.ints
	return p.before[slot][p.place(n+1+uint64(bits.TrailingZeros64(since))):][:width:width]
}

// list returns the list of objects of snapshot n.
func (p *Group) list(n uint64) *objectList {
	k := len(p.lists) - 1
	for k > 0 && p.lists[k].from > n {
		k--
	}
	return &p.lists[k]
}

// Objects returns the objects of snapshot n, which the group has. The group owns the slice.
func (p *Group) Objects(n uint64) []Object { return p.list(n).objects }

// Row returns the components of an object in snapshot n, or nil if it is not there. The group owns
// the slice.
func (p *Group) Row(o Object, n uint64) []int32 {
	l := p.list(n)
	i, ok := slices.BinarySearchFunc(l.objects, o.ID, compareID)
	if !ok || l.objects[i] != o {
		return nil
	}
	return p.rowAt(l.slots[i], n)
}

// Check returns a hash of the objects of snapshot n, which the group has, for divergence checks.
func (p *Group) Check(n uint64) uint16 {
	var s Set
	return p.view(&s, n).hash()
}

// Len returns the number of objects of the newest snapshot, or the number of objects put since the
// last Commit if that is larger.
func (p *Group) Len() int {
	n := len(p.open.objects)
	if k := len(p.lists); k > 0 {
		n = max(n, len(p.lists[k-1].objects))
	}
	return n
}

// view sets s to the objects of snapshot n and returns it. It is valid until the next Put or
// Commit.
func (p *Group) view(s *Set, n uint64) *Set {
	l := p.list(n)
	s.schema, s.objects, s.ids, s.shared, s.group, s.number, s.slots = p.schema, l.objects, l.ids, true, p, n, l.slots
	return s
}
