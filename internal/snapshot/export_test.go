package snapshot

import "math"

// CorruptSets changes the decoder's sets within their bounds.
func (d *Decoder) CorruptSets() {
	for _, e := range d.sets.ring.All() {
		if p := *e; p.Len() > 0 {
			s := d.cur.schema
			row := make([]int32, s.ints)
			s.packing.Unpack(row, p.rows)
			if row[0] < s.fields[0].Hi {
				row[0]++
			} else {
				row[0]--
			}
			s.packing.Pack(p.rows, row)
		}
	}
}

// Push appends an object that Add may refuse.
func (s *Set) Push(o Object, row []int32) { copy(s.push(o), row) }

// PushPhysics sets the ground and the size of objects along an axis, and the distance of contacts,
// also out of their ranges.
func (s *Set) PushPhysics(axis int, floor, half, contact int64) {
	s.physics.size[axis] = size{floor, half}
	s.physics.contact = contact
}

// Stored returns the number of sets in use.
func (d *Decoder) Stored() int { return d.sets.used }

// Memory returns the size of the stored sets in bytes.
func (w *History) Memory() int {
	all := []*Set{w.initial}
	for _, s := range w.sets.All() {
		all = append(all, *s)
	}
	return memory(all...)
}

// CheckEvery sets the number of snapshots per divergence check.
func (w *History) CheckEvery(n int) { w.every = uint64(n) }

// Initial returns the set that both ends start from.
func (w *History) Initial() *Set { return w.initial }

// Hash returns the hash of all that a set contains.
func (s *Set) Hash() uint16 { return s.hash() }

// PriorSchema is the schema of the built-in models.
var PriorSchema = priorSchema

// Physics returns the size of objects and their height on the ground along an axis, and the
// distance of contacts, all in steps and 0 if unknown.
func (w *History) Physics(axis int) (half, floor, contact float64) {
	p := &w.fitter.adopted
	if p.contact > 0 {
		contact = 2 * math.Sqrt(float64(reachOf(p.contact)))
	}
	return float64(p.size[axis].half) / 16, float64(p.size[axis].floor) / 16, contact
}
