package perplayer

import "github.com/uplink-rpc/uplink/ringcache"

// stateRing stores model states by sequence number, and a few unused ones for reuse.
type stateRing struct {
	schema *objectSchema
	ring   *ringcache.Ring[*modelState]
	free   []*modelState
}

func (s *stateRing) get(seq uint64) *modelState {
	if e := s.ring.Get(seq); e != nil {
		return *e
	}
	return nil
}

// take returns an unused state, which the caller must pass to put.
func (s *stateRing) take() *modelState {
	if n := len(s.free); n > 0 {
		e := s.free[n-1]
		s.free = s.free[:n-1]
		return e
	}
	return s.schema.newState()
}

// put stores the state of a snapshot. It replaces the one a whole ring older.
func (s *stateRing) put(seq uint64, e *modelState) {
	slot := s.ring.Put(seq)
	if *slot != nil {
		s.free = append(s.free, *slot)
	}
	*slot = e
}

func (s *stateRing) removeBefore(seq uint64) {
	for old := range s.ring.All() {
		if old >= seq {
			continue
		}
		slot := s.ring.Get(old)
		s.free = append(s.free, *slot)
		*slot = nil
		s.ring.Delete(old)
	}
}
