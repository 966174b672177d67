package adaptive

// State is what one end of a stream has learned: a function of the frames taken
// since the last Reset, and of their sequences. A payload is coded from the state
// as it was when its baseline had been taken: an end learns a frame when that
// one, or a newer one, becomes a baseline. Not safe for concurrent use.
type State struct {
	m       *Model
	learned modelState
	ring    int64 // frames that the codec looks back over
	newest  int64 // last frame learned, -1 none
}

// NewState gives the state of a stream of which nothing was taken. ring is the
// frames that both ends keep, the smaller of both rings; it must be the same on
// both ends, and counts as [MaxRing] if 0 or greater.
func (m *Model) NewState(ring int) *State {
	if ring <= 0 || ring > MaxRing {
		ring = MaxRing
	}
	s := &State{m: m, learned: m.newState(), ring: int64(ring)}
	s.Reset()
	return s
}

// Reset forgets everything. The frames that were kept have to be forgotten
// along with it. It allocates nothing.
func (s *State) Reset() {
	s.learned.copy(&s.m.initial)
	s.newest = -1
}

// Learn learns, in order, each frame of known up to seq that is newer than the
// last one learned, and says whether seq is the last one then: whether a payload
// against it can be coded. Beside each frame it reads those of the
// [LearnReach] sequences before it. It allocates nothing.
func (s *State) Learn(seq uint64, known *Frames) bool {
	first := s.newest + 1
	if oldest := int64(known.newest) - int64(known.Cap()) + 1; first < oldest {
		first = oldest
	}
	for n := first; n <= int64(min(seq, known.newest)); n++ {
		if known.Has(uint64(n)) {
			s.learnFrame(n, known)
		}
	}
	return s.newest == int64(seq)
}

// Follows says whether s, and every frame that learning from it up to any newer one
// reads, are still there.
func (s *State) CanLearn(known *Frames) bool {
	oldest := int64(known.newest) - int64(known.Cap()) + 1
	return s.newest >= 0 && s.newest+1-LearnReach >= oldest
}

// CopyFrom makes s equal to o, of the same model. It allocates nothing.
func (s *State) CopyFrom(o *State) {
	s.learned.copy(&o.learned)
	s.newest = o.newest
}

// Newest is the last frame that was learned since the last Reset, if any.
func (s *State) Newest() (seq uint64, ok bool) { return uint64(s.newest), s.newest >= 0 }

// take learns frame n.
func (s *State) learnFrame(n int64, known *Frames) {
	s.newest = n
	if s.learned.accepted%learnEvery == 0 {
		var t learner
		t.class = int(classSchedule[s.learned.accepted/learnEvery%uint64(len(classSchedule))])
		t.frame(s.m, &s.learned, known, n, n-LearnReach)
	}
	s.learned.accepted++
}

// Hash folds all that was learned. Both ends compare it at the same baseline.
func (s *State) Hash() uint16 {
	h := s.learned.hash(14695981039346656037)
	return uint16(h ^ h>>16 ^ h>>32 ^ h>>48)
}
