package snapshot

import (
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/ringcache"
)

// setRing stores packed sets by sequence number, and a few unused ones for reuse.
type setRing struct {
	ring *ringcache.Ring[*Packed]
	free []*Packed
	used int
	peak int // maximum of used since the last call of trim
	puts int
}

func newSetRing() setRing { return setRing{ring: ringcache.New[*Packed](Ring)} }

func (s *setRing) get(seq uint64) *Packed {
	if e := s.ring.Get(seq); e != nil {
		return *e
	}
	return nil
}

// take returns an unused entry, which the caller must pass to put or release.
func (s *setRing) take() *Packed {
	if n := len(s.free); n > 0 {
		e := s.free[n-1]
		s.free = s.free[:n-1]
		return e
	}
	return new(Packed)
}

func (s *setRing) release(e *Packed) { s.free = append(s.free, e) }

// put stores the entry of a snapshot. It replaces the entry of the snapshot that is Ring older.
func (s *setRing) put(seq uint64, e *Packed) {
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

func (s *setRing) remove(seq uint64) {
	if slot := s.ring.Get(seq); slot != nil {
		s.release(*slot)
		*slot = nil
		s.ring.Delete(seq)
		s.used--
	}
}

func (s *setRing) removeBefore(seq uint64) {
	for old := range s.ring.All() {
		if old < seq {
			s.remove(old)
		}
	}
}

func (s *setRing) clear() { s.removeBefore(math.MaxUint64) }

// trim releases unused entries beyond the peak use since the last call, plus one.
func (s *setRing) trim() {
	keep := min(len(s.free), max(s.peak+1-s.used, 0))
	clear(s.free[keep:])
	s.free = s.free[:keep]
	s.peak, s.puts = s.used, 0
}

// all returns the stored sets, and the unused ones.
func (s *setRing) all() []*Packed {
	all := slices.Clone(s.free)
	for _, e := range s.ring.All() {
		all = append(all, *e)
	}
	return all
}
