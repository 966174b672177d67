package snapshot

import "slices"

// Objects at rest are told apart by how close another one came, in quarters of an octave, and how long they have rested.
const (
	closes  = 128
	ages    = 64
	ageStep = 4 // snapshots
	oldest  = 1 << 14
)

// passed bounds how many moving objects are looked at, on either side, for the one that came closest.
const passed = 32

// resting loads an object that settled was true of.
func (w *walk) resting(index int) {
	o := &w.object
	o.index, o.base = index, w.hist.base.Row(index)
	o.moved, o.pace, o.still, o.age = 0, 0, true, int64(w.state.rested[index])
}

// settled sees fast that an object is as it was in the references.
func (w *walk) settled(index int) bool {
	base := w.hist.base.Row(index)
	for _, k := range [...]int{0, 1, refs - 1} {
		r := &w.hist.refs[k]
		at := r.find(index)
		if at < 0 || !slices.Equal(base, r.set.Row(at)) {
			return false
		}
	}
	return true
}

// age notes how many snapshots the object has rested.
func (w *walk) age(changed bool) {
	o, v := &w.object, int64(0)
	if !changed {
		v = min(o.age+w.hist.distance, oldest)
	}
	w.state.rested[o.index] = int16(v)
}

// movers are the places of objects that changed, by ascending first component, and the box that they are in.
type movers struct {
	at       [][3]int64
	low, top [3]int64
	across   int64    // a quarter of the square of the box's diagonal
	hint     [3]int64 // the last one that was the nearest to something
	hinted   bool
}

func (m *movers) reset() { m.at, m.hinted = m.at[:0], false }

func (m *movers) add(place [3]int64) {
	if len(m.at) == 0 {
		m.low, m.top = place, place
	}
	m.across = 0
	for k, v := range place {
		m.low[k], m.top[k] = min(m.low[k], v), max(m.top[k], v)
		x := m.top[k] - m.low[k]
		m.across += x * x >> 2
	}
	m.at = slices.Insert(m.at, m.find(place[0]), place)
}

// beyond gives a quarter of the square of the distance from place to the box.
func (m *movers) beyond(place *[3]int64) (d int64) {
	for k, v := range place {
		x := max(m.low[k]-v, v-m.top[k], 0)
		d += x * x >> 2
	}
	return d
}

func (m *movers) find(x int64) int {
	lo, hi := 0, len(m.at)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.at[mid][0] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// closest gives a quarter of the square of the distance from place to the mover that is nearest to it: from far
// away to the box. There must be one.
func (m *movers) closest(place *[3]int64) int64 {
	if far := m.beyond(place); far > m.across {
		return far
	}
	if !m.hinted {
		m.hint, m.hinted = m.at[0], true
	}
	at, least := m.find(place[0]), quarter(&m.hint, place)
	for i := at; i < min(len(m.at), at+passed); i++ {
		if !m.look(&m.at[i], place, &least) {
			break
		}
	}
	for i := at - 1; i >= max(0, at-passed); i-- {
		if !m.look(&m.at[i], place, &least) {
			break
		}
	}
	return least
}

// look takes a mover for the nearest if it is, and says whether one whose first component is farther off can be.
func (m *movers) look(mover, place *[3]int64, least *int64) bool {
	x := mover[0] - place[0]
	if x*x>>2 >= *least {
		return false
	}
	if d := quarter(mover, place); d < *least {
		*least, m.hint = d, *mover
	}
	return true
}

// quarter is a quarter of the square of a distance.
func quarter(a, b *[3]int64) (d int64) {
	for k := range a {
		x := a[k] - b[k]
		d += x * x >> 2
	}
	return d
}

// closeness is the context of whether an object at rest changes.
func (w *walk) closeness() int {
	s := w.schema
	if s.anchor < 0 || len(w.movers.at) == 0 {
		return 0
	}
	var place [3]int64
	at := s.at[s.anchor]
	for k := range s.fields[s.anchor].N {
		place[k] = int64(w.object.base[at+k])
	}
	return int(clamp((log2(w.movers.closest(&place))+logOne)*2/logOne+1, 1, closes-1))
}
