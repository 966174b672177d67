package snapshot

// refLags are the ages of the references, in snapshots before the baseline.
var refLags = [...]int{1, 2, 4, 6}

const (
	refs   = len(refLags)
	maxLag = 6
)

type reference struct {
	set  *Set
	same bool    // the objects are those of the baseline
	at   []int32 // otherwise: index of each object of the baseline, or -1
}

// refFrames is the baseline and the references before it.
type refFrames struct {
	base     *Set
	distance int64 // from the baseline to the coded snapshot
	bare     bool  // without references
	frames   [refs]reference
	low      [3]int64 // minimum components of the positions in the baseline
}

// begin sets the baseline, and forgets the references.
func (h *refFrames) begin(base *Set, distance int64, bare bool) {
	h.base, h.distance, h.bare = base, distance, bare
}

// model returns the number of the model.
func (h *refFrames) model() int {
	if h.bare {
		return bareModel
	}
	return modelOf(h.distance)
}

// load loads the references; get returns the set that is lag snapshots older than the baseline.
func (h *refFrames) load(s *Schema, get func(lag int) *Set) {
	h.bound(s)
	if h.bare {
		return
	}
	for i, lag := range refLags {
		r := &h.frames[i]
		r.set = get(lag)
		if r.same = r.set.sameObjects(h.base); r.same {
			continue
		}
		r.at = r.at[:0]
		k := 0
		for _, o := range h.base.objects {
			r.at = append(r.at, r.set.follow(&k, o))
		}
	}
}

func (h *refFrames) bound(s *Schema) {
	h.low = [3]int64{}
	if s.anchor < 0 || h.base.Len() == 0 {
		return
	}
	at, n := s.at[s.anchor], s.fields[s.anchor].N
	for k := range n {
		low := h.base.ints[at+k]
		for i := at + k; i < len(h.base.ints); i += s.ints {
			low = min(low, h.base.ints[i])
		}
		h.low[k] = int64(low)
	}
}

// row returns an object of the baseline in reference i or the nearest newer one, and its age; that
// of the baseline is 0.
func (h *refFrames) row(i, object int) ([]int32, int64) {
	if h.bare {
		return h.base.Row(object), 0
	}
	for ; i >= 0; i-- {
		r, at := &h.frames[i], object
		if !r.same {
			at = int(r.at[object])
		}
		if at >= 0 {
			return r.set.Row(at), int64(refLags[i])
		}
	}
	return h.base.Row(object), 0
}

// scale is log2 of the distance, among terms that are logarithms.
func (h *refFrames) scale() int64 { return 0 }
