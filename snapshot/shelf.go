package snapshot

// shelf keeps the states beside snapshots: those that may still be a baseline, and a few to use again.
type shelf struct {
	schema *Schema
	at     []place
	oldest uint64 // none before it is kept
	free   []*state
	used   int
	peak   int // most that were used together since puts was 0
	puts   int
}

type place struct {
	next  uint64 // sequence + 1
	state *state
}

func newShelf(s *Schema, ring int) shelf { return shelf{schema: s, at: make([]place, ring)} }

// get gives the state beside a snapshot, or nil.
func (s *shelf) get(seq uint64) *state {
	if p := &s.at[seq%uint64(len(s.at))]; p.next == seq+1 {
		return p.state
	}
	return nil
}

// take gives a state to be filled, and to be put or given back.
func (s *shelf) take() *state {
	if n := len(s.free); n > 0 {
		st := s.free[n-1]
		s.free = s.free[:n-1]
		return st
	}
	return s.schema.newState()
}

func (s *shelf) giveBack(st *state) { s.free = append(s.free, st) }

// put keeps a state beside a snapshot, instead of the one a ring before it.
func (s *shelf) put(seq uint64, st *state) {
	p := &s.at[seq%uint64(len(s.at))]
	s.remove(p)
	*p = place{seq + 1, st}
	s.oldest = min(s.oldest, seq)
	s.used++
	s.peak = max(s.peak, s.used)
	if s.puts++; s.puts >= len(s.at) {
		s.trim()
	}
}

func (s *shelf) remove(p *place) {
	if p.state == nil {
		return
	}
	s.giveBack(p.state)
	s.used--
	*p = place{}
}

// dropBefore forgets the states beside older snapshots.
func (s *shelf) dropBefore(seq uint64) {
	ring := uint64(len(s.at))
	if seq > s.oldest+ring {
		s.oldest = seq - ring
	}
	for ; s.oldest < seq; s.oldest++ {
		if p := &s.at[s.oldest%ring]; p.next <= seq {
			s.remove(p)
		}
	}
}

// clear forgets all.
func (s *shelf) clear() {
	for i := range s.at {
		s.remove(&s.at[i])
	}
}

// trim leaves to the garbage collector what was not needed of late, but for one.
func (s *shelf) trim() {
	keep := min(len(s.free), max(s.peak+1-s.used, 0))
	clear(s.free[keep:])
	s.free = s.free[:keep]
	s.peak, s.puts = s.used, 0
}

// memory is how many bytes the states take.
func (s *shelf) memory() (sum int) {
	for i := range s.at {
		if st := s.at[i].state; st != nil {
			sum += st.memory()
		}
	}
	for _, st := range s.free {
		sum += st.memory()
	}
	return sum
}
