package statesync

import "github.com/uplink-rpc/uplink/snapshot"

// spread is what part of the room more is picked than would fit by what updates took last, at first; later what is then
// left over is not sent.
const spread = 16

// pickFirst picks those first in line, somewhat more than may fit.
func (s *Sender) pickFirst(set *snapshot.Set) {
	c := &s.chooser
	for i := range c.list {
		if x := &c.list[i]; x.lot != barred {
			x.lot = waits
		}
	}
	c.tail, c.count, c.pending, c.needed = 0, 0, 0, 0
	if c.first < 0 {
		return
	}
	s.pick(c.first)
	if c.tail = c.first + 1; !c.how.alone {
		s.add(c.limit*bit-c.overhead, set)
	}
}

func (s *Sender) pick(i int) {
	c := &s.chooser
	x := &c.list[i]
	x.lot = picked
	c.count++
	c.pending += x.need
}

// add picks more of those in line for a room, by turns.
func (s *Sender) add(room int, set *snapshot.Set) {
	c := &s.chooser
	room += room/spread + c.typical[1]
	for passed := 0; passed < patience && c.count < maxUpdates; c.tail++ {
		if c.tail == len(c.list) && !s.more(set) {
			return
		}
		x := &c.list[c.tail]
		switch {
		case x.lot != waits || s.past(x):
			passed++
		case c.pending+x.need > room:
			return
		default:
			s.pick(c.tail)
			passed = 0
		}
	}
}

// past says that it is too late for an object in this packet.
func (s *Sender) past(x *candidate) bool {
	c := &s.chooser
	switch {
	case c.owned && s.sees && x.object.ID == s.viewer:
		return true
	case x.base >= 0:
		return x.base < c.next || c.ctx > 1
	}
	return c.ctx > 1 && int64(x.object.ID) <= c.last
}

// adjust drops or adds what is last in line, by the room that is left.
func (s *Sender) adjust(set *snapshot.Set) {
	c := &s.chooser
	room := c.limit*bit - s.walk.Enc.BitsQ8()
	if s.drop(room); !c.how.alone && c.pending+c.typical[1] < room {
		s.add(room, set)
	}
}

// drop has fewer picked, for a room.
func (s *Sender) drop(room int) {
	c := &s.chooser
	for room += room/spread + c.typical[1]; c.pending > room && c.tail > 0; {
		c.tail--
		if x := &c.list[c.tail]; x.lot == picked && c.tail != c.first {
			x.lot = waits
			c.count--
			c.pending -= x.need
		}
	}
}
