package snapshot

import "slices"

// References lists the additional sets to which payloads refer, as numbers of steps before the
// baseline. See [Baseline].
var References = [...]int{1, 2, 4, 6}

const (
	refs    = len(References)
	maxLag  = 6
	maxStep = 4

	// lateBaselines is the number of snapshots by which a baseline may be older than the newest
	// baseline so far. Older baselines occur in payloads that arrive out of order or that several
	// clients share.
	lateBaselines = 3
)

// MaxAge returns the maximum age of a set to which a payload may refer, in snapshots before the
// newest baseline so far. step is the reference step of the payload, or 0 if it has no references.
func MaxAge(step uint64) uint64 { return lateBaselines + maxLag*max(1, step) }

type reference struct {
	set  *Set
	same bool    // the set has the same objects as the baseline
	at   []int32 // unless same is set: index in set of each object of the baseline, or -1
}

// refFrames holds the baseline and the references of a payload.
type refFrames struct {
	base     *Set
	distance int64 // from the baseline to the coded snapshot
	step     int64 // snapshots per step of References; 0 means no references
	frames   [refs]reference
	unpacked [refs][]int32 // scratch of row
}

// begin sets the baseline, its distance and the step. The caller then loads the references.
func (h *refFrames) begin(base *Set, distance int64, step int) {
	h.base, h.distance, h.step = base, distance, int64(step)
}

// model returns the index of the model in modelSet.models.
func (h *refFrames) model() int {
	if h.step == 0 {
		return bareModel
	}
	return modelOf(h.distance)
}

// load loads the references; get returns the set that is lag snapshots older than the baseline.
func (h *refFrames) load(get func(lag int) *Set) {
	if h.step == 0 {
		return
	}
	for i, lag := range References {
		r := &h.frames[i]
		r.set = get(lag * int(h.step))
		if r.same = r.set.sameObjects(h.base); r.same {
			continue
		}
		r.at = r.at[:0]
		k := 0
		for _, o := range h.base.objects {
			r.at = append(r.at, follow(r.set.objects, &k, o))
		}
	}
}

// loadAll loads the references from sets, which are in the order of References.
func (h *refFrames) loadAll(sets *[refs]Set) {
	next := 0
	h.load(func(int) *Set {
		s := &sets[next]
		next++
		return s
	})
}

// differs reports whether an object of the baseline has other components in reference i, or is
// missing there.
func (h *refFrames) differs(i, object int) bool {
	r, at := &h.frames[i], int32(object)
	if !r.same {
		at = r.at[object]
	}
	if at >= 0 && h.base.packed != nil {
		return !h.base.samePacked(object, r.set, int(at))
	}
	return at < 0 || !h.base.sameRow(object, r.set, int(at))
}

// row returns the row of a baseline object in reference i, and the age of that reference in
// snapshots before the baseline. If reference i lacks the object, row uses the nearest newer set
// that has it; the age of the baseline is 0. The row is valid until the next call with the same i.
func (h *refFrames) row(i, object int) ([]int32, int64) {
	for k := i; k >= 0; k-- {
		r, at := &h.frames[k], object
		if !r.same {
			at = int(r.at[object])
		}
		if at < 0 {
			continue
		}
		age := int64(References[k]) * h.step
		if r.set.packed == nil {
			return r.set.Row(at), age
		}
		s := r.set.schema
		h.unpacked[i] = slices.Grow(h.unpacked[i][:0], s.ints)[:s.ints]
		s.packing.Unpack(h.unpacked[i], r.set.packed[at*s.packing.Words():])
		return h.unpacked[i], age
	}
	return h.base.Row(object), 0
}
