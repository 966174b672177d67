package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

const (
	// nag is after how many packets it is said again that an object is gone.
	nag = 4
	// goneBits is what that takes, about.
	goneBits = 12
)

// Needs are in 1/256 of a bit, those that are kept in needUnit.
const (
	bit      = 256
	needUnit = 16
)

// lot is what becomes of a candidate in a packet.
type lot uint8

const (
	waits  lot = iota
	picked     // it is to be coded
	sent
	failed // it did not fit
	barred // it does not fit, even alone
)

// candidate is an object that may be updated.
type candidate struct {
	object snapshot.Object
	row    []int32 // nil: it is gone
	base   int     // among bases, or -1
	need   int     // what its update takes, or took
	lot    lot
}

// with is 1 if there is a baseline.
func (x *candidate) with() int {
	if x.base >= 0 {
		return 1
	}
	return 0
}

// list starts the list of candidates: the first in line, which so is always sent if it fits, then those that are gone, in
// about half of the room, so that others go on when many vanish at once.
func (s *Sender) list(set *snapshot.Set) {
	c := &s.chooser
	c.list = c.list[:0]
	c.at = slices.Grow(c.at[:0], len(s.walk.bases))[:len(s.walk.bases)]
	clear(c.at)
	s.waiting.Start()
	s.more(set)
	kept, gone := s.live[:0], 1+min(maxUpdates, s.cfg.Budget*8/goneBits)/2
	for _, id := range s.live {
		sub := s.objects.at(id)
		if sub.seen == s.next+1 {
			kept = append(kept, id)
			continue
		}
		if s.told(id) {
			s.waiting.Remove(id)
			sub.live = false
			continue
		}
		kept = append(kept, id)
		if gone > 0 && (sub.goneSent == 0 || s.next+1-sub.goneSent >= nag) {
			x := candidate{object: snapshot.Object{ID: id}, base: -1, need: goneBits * bit}
			if at, ok := s.walk.find(id); ok {
				x.base = at
			}
			s.line(x)
			gone--
		}
	}
	s.live = kept
	if s.book.litter {
		s.book.sweep()
	}
}

// told says that the receiver knows that an object is gone.
func (s *Sender) told(id uint16) bool {
	i, ok := s.book.find(id)
	if !ok {
		return false
	}
	r := s.book.latest(s.book.known[i], &s.walk.view)
	return r != nil && r.gone
}

// line puts a candidate at the end of the list.
func (s *Sender) line(x candidate) {
	c := &s.chooser
	c.list = append(c.list, x)
	if x.base >= 0 {
		c.at[x.base] = int32(len(c.list))
	}
}

// more adds the next object in line to the list.
func (s *Sender) more(set *snapshot.Set) bool {
	for {
		id, ok := s.waiting.Next()
		if !ok {
			return false
		}
		sub := s.objects.at(id)
		if sub.seen != s.next+1 {
			s.waiting.Remove(id)
			continue
		}
		x := candidate{object: set.Object(int(sub.at)), row: set.Row(int(sub.at)), base: int(sub.base)}
		if s.walk.root {
			x.base = -1
		}
		if x.need = int(sub.bits[x.with()]) * needUnit; x.need == 0 {
			x.need = s.chooser.typical[x.with()]
		}
		s.line(x)
		return true
	}
}
