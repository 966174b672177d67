package adaptive

// State is the learned state of one end of a stream: a function of the frames accepted since the
// last Reset and of their sequence numbers. A payload is coded from the state at its baseline. An
// end learns a frame when this frame, or a newer one, becomes a baseline. Not safe for concurrent
// use.
type State struct {
	m       *Model
	learned modelState
	ring    int64 // number of frames that the codec looks back over
	newest  int64 // last frame learned, or -1
}

// NewState returns the state of a stream that has not accepted any frame. ring is the number of
// frames that both ends keep, the smaller of both rings; 0 and values above [MaxRing] mean MaxRing.
// Both ends must pass the same value.
func (m *Model) NewState(ring int) *State {
	if ring <= 0 || ring > MaxRing {
		ring = MaxRing
	}
	s := &State{m: m, learned: m.newState(), ring: int64(ring)}
	s.Reset()
	return s
}

// Reset returns to the initial state. The caller must reset the accepted frames, too. It does not
// allocate.
func (s *State) Reset() {
	s.learned.copy(&s.m.initial)
	s.newest = -1
}

// Learn learns all frames in known after the last one learned, up to seq, in order. It reports
// whether seq is now the last frame learned, so that it can be a baseline. Learning a frame reads
// the [LearnReach] sequence numbers that end with it. It does not allocate.
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

// CanLearn reports whether known still holds all frames that learning from s on reads.
func (s *State) CanLearn(known *Frames) bool {
	oldest := int64(known.newest) - int64(known.Cap()) + 1
	return s.newest >= 0 && s.newest+1-LearnReach >= oldest
}

// CopyFrom copies o, which must be of the same model. It does not allocate.
func (s *State) CopyFrom(o *State) {
	s.learned.copy(&o.learned)
	s.newest = o.newest
}

// Newest returns the last frame learned since the last Reset, if any.
func (s *State) Newest() (seq uint64, ok bool) { return uint64(s.newest), s.newest >= 0 }

func (s *State) learnFrame(n int64, known *Frames) {
	s.newest = n
	if s.learned.accepted%learnEvery == 0 {
		var t learner
		t.class = int(classSchedule[s.learned.accepted/learnEvery%uint64(len(classSchedule))])
		t.frame(s.m, &s.learned, known, n, n-LearnReach)
	}
	s.learned.accepted++
}

// Hash returns a hash of the state. The ends compare it at the same baseline.
func (s *State) Hash() uint16 {
	h := s.learned.hash(14695981039346656037)
	return uint16(h ^ h>>16 ^ h>>32 ^ h>>48)
}
