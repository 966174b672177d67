package snapshot

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/ringcache"
)

// Ring is the number of snapshots that a world stores.
const Ring = 64

// maxDistance is the maximum distance from a snapshot to its baseline.
const maxDistance = Ring - 2

// History stores the newest sets, for all encoders. Not safe for concurrent use, except that
// encoders may read it at the same time.
type History struct {
	origin
	schema *Schema
	sets   *ringcache.Ring[*Set]
	next   uint64
	every  uint64 // snapshots per divergence check
	fitter *fitter
	spare  []Object // unused list, for reuse
}

// origin holds the sets and models that both ends have before the first snapshot.
type origin struct {
	initial, empty         *Set
	initialHash, emptyHash uint16
	model                  *modelSet
}

// NewHistory returns a world that starts from initial, a set that both ends know and that must not
// be modified afterwards; nil means an empty set.
func NewHistory(s *Schema, initial *Set) *History {
	w := &History{origin: s.newOrigin(initial), schema: s, sets: ringcache.New[*Set](Ring), every: checkEvery}
	w.fitter = newFitter(w)
	return w
}

// Begin starts the next snapshot and returns its empty set. The caller fills the set, and must not
// change it after an encoder has encoded it or after the next call of Begin. If the ring is full,
// Begin discards the oldest set.
func (w *History) Begin() *Set {
	var p physics
	newest, before := w.initial, w.initial
	if w.next > 0 {
		p = w.fitter.observe(w.next - 1)
		newest = w.set(w.next - 1)
	}
	if w.next > 1 {
		before = w.set(w.next - 2)
	}
	if newest != before && slices.Equal(newest.objects, before.objects) {
		newest.shareObjects(before, &w.spare)
	}
	slot := w.sets.Put(w.next)
	w.next++
	if *slot == nil {
		*slot = w.schema.NewSet()
	}
	s := *slot
	s.Reset()
	s.prepare(newest.Len(), &w.spare)
	s.physics = p
	return s
}

// Again empties the newest set, which Begin returned, and returns it. Use it to replace a state
// that no encoder has encoded yet.
func (w *History) Again() *Set {
	s := w.set(w.next - 1)
	p := s.physics // estimated from earlier sets
	s.Reset()
	s.physics = p
	return s
}

// Schema returns the schema of the objects.
func (w *History) Schema() *Schema { return w.schema }

// Next returns the number of the next snapshot, which is also the number of snapshots so far.
func (w *History) Next() uint64 { return w.next }

func (w *History) set(n uint64) *Set { return *w.sets.Get(n) }

// load loads the baseline and the references of snapshot n into refs.
func (w *History) load(refs *refFrames, n uint64, b Baseline) error {
	base := n - uint64(b.Distance)
	switch {
	case b.Distance == 0 && b.Empty:
		refs.begin(w.empty, 1, 0)
	case b.Distance == 0:
		refs.begin(w.initial, 1, 0)
	case b.Distance < 0 || b.Step < 0 || b.Step > maxStep || b.Distance+maxLag*b.Step >= Ring || uint64(b.Distance+maxLag*b.Step) > n:
		return fmt.Errorf("%w: snapshot %d, %d before the newest", ErrBaselineMissing, uint16(base), b.Distance)
	default:
		refs.begin(w.set(base), int64(b.Distance), b.Step)
	}
	refs.load(func(lag int) *Set { return w.set(base - uint64(lag)) })
	return nil
}
