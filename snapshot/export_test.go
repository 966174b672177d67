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

// CorruptStates changes the decoder's model states.
func (d *Decoder) CorruptStates() { corrupt(&d.states) }

// CorruptStates changes the encoder's model states.
func (e *Encoder) CorruptStates() { corrupt(&e.states) }

func corrupt(s *stateRing[*modelState]) {
	for _, e := range s.ring.All() {
		(*e).changed[0].P ^= 0x1000
		(*e).removed[0].P ^= 0x1000
	}
}

// Stored returns the numbers of states in use and free, and the size of all in bytes.
func (e *Encoder) Stored() (states, free, bytes int) {
	return e.states.used, len(e.states.free), e.states.memory() + 16*e.sent.Cap() + 2*cap(e.codec.spare)
}

// Stored returns the numbers of states and sets in use.
func (d *Decoder) Stored() (states, sets int) { return d.states.used, d.sets.used }

// Memory returns the size of the stored sets in bytes.
func (w *World) Memory() int {
	sum := w.initial.memory() + w.prior.memory()
	for _, s := range w.sets.All() {
		sum += (*s).memory()
	}
	return sum
}

// Resets returns the number of resets that the decoder requested.
func (e *Encoder) Resets() uint64 { return e.resets }

const MinRing = minRing

var ErrSent = errSent
