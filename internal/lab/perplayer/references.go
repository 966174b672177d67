package perplayer

import "math/bits"

// maxLag is the maximum age of a reference, in snapshots before the baseline.
const maxLag = 12

// refLags are the preferred ages of the references, in snapshots before the baseline.
var refLags = [...]int{1, 2, 3, 4, 6}

const refs = len(refLags)

type reference struct {
	set  *set
	lag  int64   // age before the baseline in snapshots; 0 for the baseline itself
	same bool    // the objects are those of the baseline
	at   []int32 // otherwise: index of each object of the baseline, or -1
}

// refFrames is the baseline and the references before it.
type refFrames struct {
	base     *set
	distance int64 // from the baseline to the coded snapshot
	frames   [refs]reference
	low      [3]int64 // minimum components of the positions in the baseline
}

// choose chooses among the known sets: bit i of mask is set if the set i+1 before the baseline is.
func (h *refFrames) choose(mask uint32, get func(lag int) *set) {
	for i, want := range refLags {
		r := &h.frames[i]
		r.set, r.lag = h.base, 0
		if older := mask >> (want - 1); older != 0 {
			lag := want + bits.TrailingZeros32(older)
			r.set, r.lag = get(lag), int64(lag)
		} else if i > 0 {
			r.set, r.lag = h.frames[i-1].set, h.frames[i-1].lag
		}
	}
}

func (h *refFrames) index() {
	for i := range h.frames {
		r := &h.frames[i]
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

func (h *refFrames) bound(s *objectSchema) {
	h.low = [3]int64{}
	if s.anchor < 0 || h.base.len() == 0 {
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

// row returns an object of the baseline in reference i or the nearest newer one, and its age.
func (h *refFrames) row(i, object int) ([]int32, int64) {
	for ; i >= 0; i-- {
		r, at := &h.frames[i], object
		if !r.same {
			at = int(r.at[object])
		}
		if at >= 0 {
			return r.set.row(at), r.lag
		}
	}
	return h.base.row(object), 0
}
