package snapshot

import "math"

// CorruptSets changes the decoder's sets within their bounds.
func (d *Decoder) CorruptSets() {
	for _, e := range d.sets.ring.All() {
		if s := *e; len(s.ints) > 0 {
			if f := &s.schema.fields[0]; s.ints[0] < f.Hi {
				s.ints[0]++
			} else {
				s.ints[0]--
			}
		}
	}
}

// Stored returns the number of sets in use.
func (d *Decoder) Stored() int { return d.sets.used }

// Memory returns the size of the stored sets in bytes.
func (w *World) Memory() int {
	sum := w.initial.memory(nil)
	var before *Set
	for _, s := range w.sets.All() {
		sum += (*s).memory(before)
		before = *s
	}
	return sum
}

// CheckEvery sets the number of snapshots per divergence check.
func (w *World) CheckEvery(n int) { w.every = uint64(n) }

<<<<<<< HEAD
// Counted returns a payload without a baseline that announces a number of objects, the first of
// them with an id.
func Counted(s *Schema, objects, id uint64) []byte {
	e := NewEncoder(s)
	pc := &e.codec
	pc.refs.begin(s.NewSet(), 1, 0)
	pc.Enc.Reset([]byte{0, 0, flagEmpty}, 0)
	pc.begin(defaultModel(s).at(&pc.refs))
	pc.codePhysics(s.NewSet())
	pc.bit(pc.schema.layout.removed, false)
	pc.count(pc.schema.layout.added, addedLevel, objects)
	pc.count(pc.schema.layout.gap, gapLevel, id)
	return pc.Enc.Finish()
=======
// Physics returns the size of objects and their height on the ground along an axis, and the distance
// of contacts, all in steps and 0 if unknown.
func (w *World) Physics(axis int) (half, floor, contact float64) {
	p := &w.fitter.adopted
	if p.contact > 0 {
		contact = 2 * math.Sqrt(float64(reachOf(p.contact)))
	}
	return float64(p.size[axis].half) / 16, float64(p.size[axis].floor) / 16, contact
>>>>>>> wt-E
}
