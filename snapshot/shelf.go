package snapshot

// shelf keeps things by snapshot, sets or the states beside them: those that may still be read, and a few to use again.
type shelf[T thing] struct {
	fresh  func() T
	at     []place[T]
	oldest uint64 // none before it is kept
	free   []T
	used   int
	peak   int // most that were used together since puts was 0
	puts   int
}

// thing is what a shelf keeps; nil is none.
type thing interface {
	*state | *Set
	memory() int
}

type place[T thing] struct {
	next  uint64 // sequence + 1
	thing T
}

func newShelf[T thing](ring int, fresh func() T) shelf[T] {
	return shelf[T]{fresh: fresh, at: make([]place[T], ring)}
}

// get gives what is kept of a snapshot, or nil.
func (s *shelf[T]) get(seq uint64) T {
	if p := &s.at[seq%uint64(len(s.at))]; p.next == seq+1 {
		return p.thing
	}
	return nil
}

// take gives a thing to be filled, and to be put or given back.
func (s *shelf[T]) take() T {
	if n := len(s.free); n > 0 {
		t := s.free[n-1]
		s.free = s.free[:n-1]
		return t
	}
	return s.fresh()
}

func (s *shelf[T]) giveBack(t T) { s.free = append(s.free, t) }

// put keeps what is of a snapshot, instead of the one a ring before it.
func (s *shelf[T]) put(seq uint64, t T) {
	p := &s.at[seq%uint64(len(s.at))]
	s.remove(p)
	*p = place[T]{seq + 1, t}
	s.oldest = min(s.oldest, seq)
	s.used++
	s.peak = max(s.peak, s.used)
	if s.puts++; s.puts >= len(s.at) {
		s.trim()
	}
}

func (s *shelf[T]) remove(p *place[T]) {
	if p.thing == nil {
		return
	}
	s.giveBack(p.thing)
	s.used--
	*p = place[T]{}
}

// dropBefore forgets what is of older snapshots.
func (s *shelf[T]) dropBefore(seq uint64) {
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
func (s *shelf[T]) clear() {
	for i := range s.at {
		s.remove(&s.at[i])
	}
}

// trim leaves to the garbage collector what was not needed of late, but for one.
func (s *shelf[T]) trim() {
	keep := min(len(s.free), max(s.peak+1-s.used, 0))
	clear(s.free[keep:])
	s.free = s.free[:keep]
	s.peak, s.puts = s.used, 0
}

// memory is how many bytes all take.
func (s *shelf[T]) memory() (sum int) {
	for i := range s.at {
		if t := s.at[i].thing; t != nil {
			sum += t.memory()
		}
	}
	for _, t := range s.free {
		sum += t.memory()
	}
	return sum
}
