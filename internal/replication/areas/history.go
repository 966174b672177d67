package areas

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Limits of a world.
const (
	// MaxAreas is the maximum number of areas of an object.
	MaxAreas = 16
	// groupSize is the number of objects from which on a group accepts no others.
	groupSize = 256
	// maxArrivals is the maximum number of objects that may enter an existing group in a tick. If
	// more enter, the others form a new group, whose keyframe can be delayed.
	maxArrivals = 8
)

// History stores the objects of a world by snapshot and by group. Call Begin, Put and Commit from
// one goroutine at a time, and not while a group is encoded.
type History struct {
	// Observer, if set, is called before and after each encoding of a group, perhaps by several
	// goroutines.
	Observer Observer
	// Encodings counts the encodings of groups since the world began.
	Encodings atomic.Uint64

	types   []*Type
	areas   map[area.ID]*groupList // groups by area
	keys    map[string]*keyed      // groups by object type and areas
	groups  []*Group               // all groups
	changes uint64                 // number of changes of the lists in areas
	next    uint64                 // number of the newest snapshot + 1
	key     []byte                 // scratch: a key of keys
	sorted  []area.ID              // scratch: areas of an object
}

// groupList lists the groups of one area.
type groupList struct {
	groups  []*Group
	version uint64 // number of changes of the list
}

// keyed lists the groups of one object type in the same areas.
type keyed struct {
	groups   []*Group
	entered  int // number of objects that entered these groups in snapshot enteredN
	enteredN uint64
}

// Observer is called before and after each encoding of a group.
type Observer interface {
	Encoding()
	Encoded(bytes int)
}

// Type is a type of objects of a world.
type Type struct {
	world    *History
	number   int // index in History.types
	schema   *snapshot.Schema
	places   []place // by object id
	last     int     // highest object id in the open snapshot, or -1
	encoders sync.Pool
}

// encoder returns an encoder from the pool. The caller puts it back.
func (t *Type) encoder() *snapshot.Encoder {
	if e, ok := t.encoders.Get().(*snapshot.Encoder); ok {
		return e
	}
	return new(snapshot.Encoder)
}

// place is the group into which an object was put last.
type place struct {
	group      *Group
	generation uint8
	next       uint64 // number of the newest snapshot with the object, plus 1
	entered    uint64 // number of the snapshot in which the object entered the group
}

// NewHistory returns a world without object types.
func NewHistory() *History {
	return &History{areas: map[area.ID]*groupList{}, keys: map[string]*keyed{}}
}

// AddType adds an object type.
func (w *History) AddType(s *snapshot.Schema) *Type {
	t := &Type{world: w, number: len(w.types), schema: s, last: -1}
	w.types = append(w.types, t)
	return t
}

// Next returns the number of the next snapshot.
func (w *History) Next() uint64 { return w.next }

// Begin begins the next snapshot.
func (w *History) Begin() {
	w.next++
	for _, t := range w.types {
		t.last = -1
	}
}

// Put adds an object to the snapshot that Begin began. The ids of one type must ascend. An error
// leaves the snapshot unchanged.
func (w *History) Put(t *Type, o snapshot.Object, row []int32, in ...area.ID) error {
	n := w.next - 1
	if int(o.ID) <= t.last {
		return fmt.Errorf("object %d after object %d: want ascending ids", o.ID, t.last)
	}
	if len(in) > MaxAreas {
		return fmt.Errorf("object %d is in %d areas, want at most %d", o.ID, len(in), MaxAreas)
	}
	if int(o.ID) >= len(t.places) {
		t.places = slices.Grow(t.places, int(o.ID)+1-len(t.places))[:int(o.ID)+1]
	}
	p := &t.places[o.ID]
	from := p.group
	if p.next != n || p.generation != o.Generation { // the object was not in the previous snapshot
		from = nil
	}
	g := from
	if g == nil || !slices.Equal(g.areas, in) {
		if in = w.normal(in); g == nil || !slices.Equal(g.areas, in) {
			g = w.enter(t, in)
		}
	}
	if err := g.content.Put(o, row); err != nil {
		return err
	}
	entered := p.entered
	if g != from {
		entered = n
		g.arrivals = append(g.arrivals, arrival{n, o, from})
	}
	*p = place{g, o.Generation, n + 1, entered}
	t.last = int(o.ID)
	return nil
}

// where returns the place of object o in snapshot n, the newest. It returns nil if o is not in that
// snapshot.
func (t *Type) where(o snapshot.Object, n uint64) *place {
	if int(o.ID) >= len(t.places) {
		return nil
	}
	if p := &t.places[o.ID]; p.next == n+1 && p.generation == o.Generation {
		return p
	}
	return nil
}

// list returns the groups of an area, which may be new.
func (w *History) list(a area.ID) *groupList {
	l := w.areas[a]
	if l == nil {
		l = &groupList{}
		w.areas[a] = l
	}
	return l
}

// normal returns the areas in ascending order without duplicates. No areas mean area.All.
func (w *History) normal(in []area.ID) []area.ID {
	w.sorted = append(w.sorted[:0], in...)
	if len(in) == 0 {
		w.sorted = append(w.sorted, area.All)
	}
	slices.Sort(w.sorted)
	w.sorted = slices.Compact(w.sorted)
	return w.sorted
}

// enter returns the group for an object that enters these areas. It creates a group if no existing
// one accepts the object.
func (w *History) enter(t *Type, in []area.ID) *Group {
	n := w.next - 1
	w.key = append(w.key[:0], byte(t.number))
	for _, a := range in {
		w.key = binary.LittleEndian.AppendUint32(w.key, uint32(a))
	}
	k := w.keys[string(w.key)]
	if k == nil {
		k = &keyed{}
		w.keys[string(w.key)] = k
	}
	if k.enteredN != n {
		k.entered, k.enteredN = 0, n
	}
	k.entered++
	if i := len(k.groups) - 1; i >= 0 {
		if g := k.groups[i]; g.content.Len() < groupSize && (g.first == n || k.entered <= maxArrivals) {
			return g
		}
	}
	g := &Group{typ: t, content: t.schema.GroupFrom(n), areas: slices.Clone(in), key: string(w.key), first: n}
	k.groups = append(k.groups, g)
	w.groups = append(w.groups, g)
	for _, a := range in {
		l := w.list(a)
		l.groups = append(l.groups, g)
		l.version++
		w.changes++
	}
	return g
}

// Commit ends the snapshot. It removes groups that were empty in the last snapshot.Ring snapshots.
func (w *History) Commit() {
	n := w.next - 1
	w.groups = slices.DeleteFunc(w.groups, func(g *Group) bool {
		g.commit(n)
		gone := n >= g.used+snapshot.Ring
		if gone {
			w.remove(g)
		}
		return gone
	})
}

// Encodes returns the number of encodings of groups of the newest snapshot.
func (w *History) Encodes() (sum int) {
	for _, g := range w.groups {
		if g.encoded == w.next-1 {
			sum += g.count
		}
	}
	return sum
}

func (w *History) remove(g *Group) {
	is := func(o *Group) bool { return o == g }
	k := w.keys[g.key]
	if k.groups = slices.DeleteFunc(k.groups, is); len(k.groups) == 0 {
		delete(w.keys, g.key)
	}
	for _, a := range g.areas {
		l := w.areas[a]
		l.groups = slices.DeleteFunc(l.groups, is)
		l.version++
		w.changes++
	}
}
