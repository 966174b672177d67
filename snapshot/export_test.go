package snapshot

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
}
