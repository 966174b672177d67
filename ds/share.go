package ds

// share divides the bytes that may wait for Poll: half of them evenly among the
// players, so that nobody can crowd another out; the other half is for those who
// need more, first come, first served. It is guarded by the queue's lock.
type share struct {
	limit   int
	players int

	polls  uint64 // how often all that waited was taken
	used   int    // by all who wait, since
	common int    // of the half for those who need more
}

// holding is what one player has in the queue. It is guarded by the queue's lock.
type holding struct {
	polls uint64
	own   int // of the player's own part
}

// admit says whether so many more bytes of a player may wait.
func (s *share) admit(h *holding, size int) bool {
	if h.polls != s.polls {
		*h = holding{polls: s.polls}
	}
	half := s.limit / 2
	switch {
	case s.used+size > s.limit: // only if players came since the last Poll
		return false
	case h.own+size <= half/max(s.players, 1):
		h.own += size
	case s.common+size <= half:
		s.common += size
	default:
		return false
	}
	s.used += size
	return true
}

// taken says that nothing waits any more.
func (s *share) taken() {
	s.polls++
	s.used, s.common = 0, 0
}
