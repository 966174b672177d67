package perplayer

import (
	"math"

	"github.com/uplink-rpc/uplink/ringcache"
)

// stateRing stores sets or model states by sequence number, and a few unused ones for reuse.
type stateRing[T entry] struct {
	newEntry func() T
	ring     *ringcache.Ring[T]
	free     []T
	used     int
	peak     int // maximum of used since puts was 0
	puts     int
}

type entry interface {
	*modelState | *Set
	memory() int
}

func newStateRing[T entry](capacity int, newEntry func() T) stateRing[T] {
	return stateRing[T]{newEntry: newEntry, ring: ringcache.New[T](capacity)}
}

func (s *stateRing[T]) get(seq uint64) T {
	if e := s.ring.Get(seq); e != nil {
		return *e
	}
	return nil
}

// take returns an unused entry, which the caller must pass to put or release.
func (s *stateRing[T]) take() T {
	if n := len(s.free); n > 0 {
		e := s.free[n-1]
		s.free = s.free[:n-1]
		return e
	}
	return s.newEntry()
}

func (s *stateRing[T]) release(e T) { s.free = append(s.free, e) }

// put stores the entry of a snapshot. It replaces the one a whole ring older.
func (s *stateRing[T]) put(seq uint64, e T) {
	slot := s.ring.Put(seq)
	if *slot != nil {
		s.release(*slot)
		s.used--
	}
	*slot = e
	s.used++
	s.peak = max(s.peak, s.used)
	if s.puts++; s.puts >= s.ring.Cap() {
		s.trim()
	}
}

func (s *stateRing[T]) remove(seq uint64) {
	if slot := s.ring.Get(seq); slot != nil {
		s.release(*slot)
		*slot = nil
		s.ring.Delete(seq)
		s.used--
	}
}

func (s *stateRing[T]) removeBefore(seq uint64) {
	for old := range s.ring.All() {
		if old < seq {
			s.remove(old)
		}
	}
}

func (s *stateRing[T]) clear() { s.removeBefore(math.MaxUint64) }

// trim frees the unused entries that were not needed since the last call, except for one.
func (s *stateRing[T]) trim() {
	keep := min(len(s.free), max(s.peak+1-s.used, 0))
	clear(s.free[keep:])
	s.free = s.free[:keep]
	s.peak, s.puts = s.used, 0
}

func (s *stateRing[T]) memory() (sum int) {
	for _, e := range s.ring.All() {
		sum += (*e).memory()
	}
	for _, e := range s.free {
		sum += e.memory()
	}
	return sum
}
