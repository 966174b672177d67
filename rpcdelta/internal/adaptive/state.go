package adaptive

// digestEvery is how many taken frames lie between digests.
const digestEvery = 21

// State is what one end of a stream has learned: a function of the frames taken
// since the last Reset, and of their sequences. Frames from before are neither
// read nor baselines, even if History still has them. Not safe for concurrent use.
type State struct {
	m       *Model
	live    live
	ring    int64 // frames that the codec looks back over
	digests []digest
	seqs    []int64 // newest frame of each digest
	count   uint64  // digests taken
	origin  int64   // first frame taken since the last Reset, -1 none
}

// NewState gives the state of a stream of which nothing was taken. ring is the
// frames that both ends keep, the smaller of both rings; it must be the same on
// both ends, and counts as [MaxRing] if 0 or greater.
func (m *Model) NewState(ring int) *State {
	if ring <= 0 || ring > MaxRing {
		ring = MaxRing
	}
	n := (ring-2+digestEvery-1)/digestEvery + 1
	s := &State{m: m, live: m.newLive(), ring: int64(ring), digests: make([]digest, n), seqs: make([]int64, n)}
	for i := range s.digests {
		s.digests[i] = m.newDigest()
	}
	s.Reset()
	return s
}

// Reset forgets everything. It allocates nothing.
func (s *State) Reset() {
	s.live.copy(&s.m.first)
	s.count, s.origin = 0, -1
}

// Take learns frame seq, which h already gives. It is called once for each
// taken frame, in order. Beside it, it reads the frames taken among the
// [LearnReach] sequences before it. It allocates nothing.
func (s *State) Take(seq uint64, h History) {
	n := int64(seq)
	if s.origin < 0 {
		s.origin = n
	}
	var l learner
	l.take(s.m, &s.live, h, n, max(s.origin-1, n-min(s.ring, LearnReach)))
	if s.live.taken%digestEvery == 0 {
		i := s.count % uint64(len(s.digests))
		s.digests[i].take(s.m, &s.live)
		s.seqs[i] = n
		s.count++
	}
}

// at is the newest digest at or before base, or nil if it is gone or base is of
// before the last Reset.
func (s *State) at(base int64) *digest {
	n := uint64(len(s.digests))
	if s.origin < 0 || base < s.origin {
		return nil
	}
	for k := uint64(1); k <= min(n, s.count); k++ {
		if i := (s.count - k) % n; s.seqs[i] <= base {
			return &s.digests[i]
		}
	}
	if s.count > n {
		return nil
	}
	return &s.m.prior
}

// Covers says whether a payload against base can still be coded. It can if base
// was taken since the last Reset, and at most ring-2 frames after it.
func (s *State) Covers(base uint64) bool { return s.at(int64(base)) != nil }

// Hash folds what coding against base reads of the state; it is 0 where that is
// not covered. Both ends compare it.
func (s *State) Hash(base uint64) uint16 {
	d := s.at(int64(base))
	if d == nil {
		return 0
	}
	h := d.sum(14695981039346656037)
	return uint16(h ^ h>>16 ^ h>>32 ^ h>>48)
}
