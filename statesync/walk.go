package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

const (
	// maxTick bounds ticks, so that their differences do not run over.
	maxTick = 1 << 53
	// maxJump is how far a tick may be from where it is expected before a packet has to refer to none.
	maxJump = 1 << 30
	// hashed is of how many packets one has a hash.
	hashed = 64
)

// job is an update to be coded.
type job struct {
	update
	row  []int32 // at the sender
	base note
	has  bool // whether there is a baseline
	bits int  // what it took
	from int  // at the sender: which candidate it is
}

// based is an object that has a baseline in the view.
type based struct {
	base  note
	rests int
}

// walk codes a packet in either direction.
type walk struct {
	coder
	plan   *plan
	book   *book
	out    *packet // what is coded: its state adapts
	root   bool    // refers to none
	view   view
	base   *packet // the newest of the view
	bases  []based
	jobs   []job
	near   []near
	object object
	eye    [3]int64 // the viewer's place
	sees   bool     // it is known
	novel  bool     // relative places are allowed
	bad    bool     // what was decoded is out of bounds
	older  []byte   // inputs of the tick before, while they are coded
}

// begin makes the state that of the base.
func (w *walk) begin(prior *state) {
	if w.root {
		w.out.state.copyFrom(prior)
		return
	}
	w.out.state.copyFrom(w.base.state)
}

// recent codes which of the last packets before the newest are held.
func (w *walk) recent(said uint32) (got uint32) {
	s, before := w.out.state, 1
	for i := range settled - 1 {
		b := w.bit(&s.held[before], said>>i&1 != 0)
		before = 0
		if b {
			got |= 1 << i
			before = 1
		}
	}
	return got
}

// tick codes the tick, told from where it is expected.
func (w *walk) tick() bool {
	if w.root {
		return true
	}
	s, p := w.out.state, int64(w.out.seq-w.base.seq)
	expect := w.base.tick + p*s.pace
	w.out.tick = expect + w.number(&s.size, 1, 0, w.out.tick-expect)
	s.pace = clamp((w.out.tick-w.base.tick)/p, 0, 1<<20)
	return abs(w.out.tick) <= maxTick
}

// agree codes a hash, and says whether both have the same.
func (w *walk) agree() bool {
	if w.root || w.out.seq%hashed != 0 {
		return true
	}
	h := uint64(w.book.hash(w.out.state, &w.view))
	return w.raw(h, 16) == h
}

// rest codes what follows the tick: viewer, inputs, objects.
func (w *walk) rest(viewer uint16, has bool, in *inputLog) bool {
	s := w.out.state
	if w.bit(&s.viewer[0], has) {
		if !w.bit(&s.viewer[1], viewer == s.view) {
			s.view = uint16(w.raw(uint64(viewer), 16))
		}
		viewer, has = s.view, true
	}
	if !w.inputs(in) || !w.strangers(w.members()) {
		return false
	}
	return w.updates(viewer, has)
}

func (w *walk) used() int {
	if w.decoding {
		return 0
	}
	return w.enc.Bits()
}

// prepare finds the objects that have a baseline.
func (w *walk) prepare() {
	w.bases = w.bases[:0]
	for _, k := range w.book.known {
		if n, ok := w.book.baseline(k, &w.view); ok {
			b := based{base: n}
			if w.plan.rests(n.row) {
				b.rests = 1
			}
			w.bases = append(w.bases, b)
		}
	}
}

// members codes which of the objects that have a baseline are updated. It gives their number.
func (w *walk) members() int {
	s, at, n := w.out.state, 0, 0
	if w.root {
		return 0
	}
	for i := range w.bases {
		b := &w.bases[i]
		id := b.base.object.ID
		for at < len(w.jobs) && w.jobs[at].object.ID < id {
			at++
		}
		is := at < len(w.jobs) && w.jobs[at].object.ID == id
		if !w.bit(&s.member[b.rests][w.age(b.base.seq)], is) {
			continue
		}
		if w.decoding {
			if n == MaxUpdates {
				w.bad = true
				return n
			}
			w.jobs = append(w.jobs, job{update: update{object: b.base.object}})
			at = n
		}
		w.jobs[at].base, w.jobs[at].has = b.base, true
		n++
	}
	return n
}

func (w *walk) age(seq uint64) int {
	return min(bits.Len64(w.view.newest-seq), ages-1)
}

// strangers codes which objects without a baseline are updated, known of them having one.
func (w *walk) strangers(n int) bool {
	s := w.out.state
	more := w.number(&s.size, 2, 1, int64(len(w.jobs)-n))
	if w.bad || more < 0 || more > int64(MaxUpdates-n) {
		return false
	}
	before, at := int64(-1), 0
	for range more {
		var o snapshot.Object
		if !w.decoding {
			for w.jobs[at].has {
				at++
			}
			o = w.jobs[at].object
			at++
		}
		id := before + 1 + w.number(&s.size, 8, 2, int64(o.ID)-before-1)
		if id <= before || id > 1<<16-1 {
			return false
		}
		before = id
		if w.decoding {
			i, there := slices.BinarySearchFunc(w.jobs, uint16(id), func(j job, id uint16) int { return int(j.object.ID) - int(id) })
			if there {
				return false
			}
			w.jobs = slices.Insert(w.jobs, i, job{update: update{object: snapshot.Object{ID: uint16(id)}}})
		}
	}
	return true
}

// updates codes all updates: the viewer's first, which others are told from.
func (w *walk) updates(viewer uint16, has bool) bool {
	w.near = w.near[:0]
	w.sees = false
	n := w.book.stride()
	w.out.updates = w.out.updates[:0]
	w.out.notes = slices.Grow(w.out.notes[:0], n*len(w.jobs))[:n*len(w.jobs)]
	first := -1
	if has {
		first = w.look(viewer)
	}
	if first >= 0 {
		w.update(&w.jobs[first], w.notes(first))
		w.sight(w.notes(first).row, w.jobs[first].gone)
	}
	for i := range w.jobs {
		if i != first {
			w.update(&w.jobs[i], w.notes(i))
		}
		if w.bad {
			return false
		}
		w.out.updates = append(w.out.updates, w.jobs[i].update)
	}
	return !w.bad
}

// look finds the viewer's object: its place among the jobs, or -1 and where it was.
func (w *walk) look(viewer uint16) int {
	for i := range w.jobs {
		if w.jobs[i].object.ID == viewer {
			return i
		}
	}
	if i, ok := w.find(viewer); ok && !w.root {
		w.sight(w.bases[i].base.row, false)
	}
	return -1
}

// find gives the place of an id among bases, and whether it is there.
func (w *walk) find(id uint16) (int, bool) {
	return slices.BinarySearchFunc(w.bases, id, func(b based, id uint16) int { return int(b.base.object.ID) - int(id) })
}

func (w *walk) sight(row []int32, gone bool) {
	if w.plan.anchor < 0 || gone {
		return
	}
	f := &w.plan.fields[w.plan.anchor]
	w.sees = true
	for k := range f.N {
		w.eye[k] = int64(row[f.at+k])
	}
}

func (w *walk) notes(i int) note {
	n := w.book.stride()
	return w.book.open(w.jobs[i].object, w.out.seq, w.out.tick, w.out.notes[i*n:(i+1)*n:(i+1)*n])
}
