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
	sum := w.initial.memory()
	for _, s := range w.sets.All() {
		sum += (*s).memory()
	}
	return sum
}

// Resets returns the number of resets that the decoder requested.
func (r *Receipts) Resets() uint64 { return r.resets }

// CheckEvery sets the number of snapshots per divergence check.
func (w *World) CheckEvery(n int) { w.every = uint64(n) }

// Physics returns the size of objects and their height on the ground along an axis, and the
// distance of contacts, all in steps and 0 if unknown.
func (w *World) Physics(axis int) (half, floor, contact float64) {
	p := &w.fitter.adopted
	if p.contact > 0 {
		contact = 2 * math.Sqrt(float64(reachOf(p.contact)))
	}
	return float64(p.size[axis].half) / 16, float64(p.size[axis].floor) / 16, contact
}
