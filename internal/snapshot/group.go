package snapshot

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// MaxGroup is the maximum number of objects of a [Group]. So the slots of Ring snapshots have
// numbers of 16 bits, even if each has other objects than the one before.
const MaxGroup = 1000

// Group is objects of a world that are coded together, in the newest [Ring] snapshots. Rows are
// kept only while they change. Put and Commit are for one goroutine at a time, while nobody reads
// the group.
type Group struct {
	schema  *Schema
	first   uint64       // number of the first snapshot
	next    uint64       // number of the next snapshot
	changed uint64       // snapshots that are not equal to the one before: bit n%Ring for snapshot n
	lists   []objectList // of all snapshots, oldest first
	rows    []int32      // newest row of each slot
	changes []uint64     // of each slot: snapshots in which its object came or changed, bit n%Ring for snapshot n
	before  [][]int32    // of each slot: its rows before these changes, at n%Ring; nil without any
	open    objectList   // of the next snapshot
	at      int          // where in the newest list the next object is looked for
	left    []departure  // oldest first
	free    []uint16     // unused slots
	blocks  [][]int32    // unused
	lows    []low        // of all snapshots, oldest first
}

// objectList is the objects of a group, from a snapshot on.
type objectList struct {
	from    uint64
	objects []Object
	slots   []uint16 // of the objects
	ids     fnv.Hash // of the objects
}

// low is the minimum components of the positions, from a snapshot on.
type low struct {
	from uint64
	at   [3]int64
}

// departure tells that the object of a slot was not in snapshot n any more.
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

// follow returns the slot of an object of the newest snapshot, given by ascending id.
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

// keep keeps the newest row of a slot, which changes with the next snapshot.
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

// Commit completes the next snapshot: it has the objects that were put since the last one.
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

// discard discards what only snapshots need that are Ring or more older than snapshot n.
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

// commitList makes the open list that of snapshot n, unless it has the objects of the one before.
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

// since returns those of the changes that came after snapshot n: bit 0 for snapshot n+1.
func (p *Group) since(changes, n uint64) uint64 {
	age := p.next - 1 - n
	return bits.RotateLeft64(changes, -int(p.next%Ring)) >> (Ring - age)
}

// place returns where an object's row before a change with snapshot n is, among its rows.
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

// Len returns the number of objects of the newest snapshot, or of those that were put since if they
// are more.
func (p *Group) Len() int {
	n := len(p.open.objects)
	if k := len(p.lists); k > 0 {
		n = max(n, len(p.lists[k-1].objects))
	}
	return n
}

// view makes s the objects of snapshot n, valid until the next Put or Commit.
func (p *Group) view(s *Set, n uint64) *Set {
	l := p.list(n)
	s.schema, s.objects, s.ids, s.shared, s.group, s.number, s.slots = p.schema, l.objects, l.ids, true, p, n, l.slots
	return s
}
