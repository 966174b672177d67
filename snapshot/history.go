package snapshot

// reach is how far before the baseline prediction looks.
const maxLag = 12

// wanted are the distances before the baseline at which prediction would have its references, in snapshots.
var wanted = [...]int{1, 2, 3, 4, 6}

const refs = len(wanted)

// reference is a set before the baseline, or the baseline itself where there is none.
type reference struct {
	set  *Set
	lag  int64   // before the baseline; 0 for itself
	same bool    // as the baseline it has the very objects
	at   []int32 // otherwise: where each object of the baseline is, or -1
}

// refFrames is the baseline and what is known from before it.
type refFrames struct {
	base     *Set
	distance int64 // from the baseline to what is coded
	frames   [refs]reference
	low      [3]int64 // least components of the anchor in the baseline
}

// choose picks the references out of those that the mask says are known: bit i is the set i+1 before the baseline.
func (h *refFrames) choose(mask uint32, get func(lag int) *Set) {
	for i, want := range wanted {
		r := &h.frames[i]
		r.set, r.lag = h.base, 0
		for lag := want; lag <= maxLag; lag++ {
			if mask>>(lag-1)&1 != 0 {
				r.set, r.lag = get(lag), int64(lag)
				break
			}
		}
		if r.lag == 0 && i > 0 {
			r.set, r.lag = h.frames[i-1].set, h.frames[i-1].lag
		}
	}
}

// index finds each object of the baseline in the references: -1 where it was not there.
func (h *refFrames) index() {
	for i := range h.frames {
		r := &h.frames[i]
		if r.same = r.set.alike(h.base); r.same {
			continue
		}
		r.at = r.at[:0]
		k := 0
		for _, o := range h.base.objects {
			for k < len(r.set.objects) && r.set.objects[k].ID < o.ID {
				k++
			}
			at := int32(-1)
			if k < len(r.set.objects) && r.set.objects[k] == o {
				at = int32(k)
			}
			r.at = append(r.at, at)
		}
	}
}

// bound finds the least place of the baseline's objects.
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

// row is an object of the baseline in reference i, or what comes nearest.
func (h *refFrames) row(i, object int) ([]int32, int64) {
	for ; i >= 0; i-- {
		if at := h.frames[i].find(object); at >= 0 {
			return h.frames[i].set.Row(at), h.frames[i].lag
		}
	}
	return h.base.Row(object), 0
}

// find gives the place of an object of the baseline, or -1.
func (r *reference) find(object int) int {
	if r.same {
		return object
	}
	return int(r.at[object])
}

// begin prepares the references once the mask is known.
func (pc *payloadCodec) begin(mask uint32, get func(lag int) *Set) {
	pc.refs.choose(mask, get)
	pc.refs.index()
	pc.refs.bound(pc.schema)
}
