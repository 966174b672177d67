package statesync

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

// patience is how many objects that do not fit are passed over in a row, and how many are tried alone.
const patience = 12

// chooser fills packets. It picks the first in line that may fit by what their updates took last, codes them by id, and
// drops the last in line or adds others as more or less room is left than expected.
type chooser struct {
	typical  [2]int // need of an update, without and with a baseline
	overhead int    // of the last packet, beside its updates
	list     []candidate
	at       []int32 // by base: the candidate, + 1
	out      packet
	buf      []byte
	mark     mark

	how     manner
	limit   int   // bits of the payload
	first   int   // the candidate that is first in line, or -1
	tail    int   // candidates from here on are not picked
	count   int   // of those that are picked or sent
	pending int   // need of those picked
	needed  int   // need of those sent
	owned   bool  // it is coded whether the viewer's object is updated
	ctx     int   // of more
	next    int   // the base of which it is coded next whether it is updated
	last    int64 // the last object without a baseline
}

// manner is how a packet is tried.
type manner struct {
	careful bool // there is a mark before each object
	alone   bool // only the first in line is sent
}

func (c *chooser) init(p *plan) {
	c.typical = [2]int{p.ints * 12 * bit, p.ints * 6 * bit}
	c.mark.state = p.newState()
}

// choose makes the packet and gives its bytes.
func (s *Sender) choose(tick int64, set *snapshot.Set) ([]byte, error) {
	c, least := &s.chooser, MaxPacket+1
	for _, room := range [...]int{s.cfg.Budget / 2, -1} { // of inputs
		from, to := s.inputs.next, s.inputs.next
		if room >= 0 {
			from = s.inputs.due(s.cfg.Ticks, room)
		}
		size, ok := s.fill(tick, from, to, set)
		if ok {
			return c.buf, nil
		}
		least = size
		if from == to {
			break
		}
	}
	return nil, fmt.Errorf("%w: %d bytes, the smallest update tried takes a packet of %d", ErrBudget, s.cfg.Budget, least)
}

// fill makes the packet with the inputs of ticks. Where no update fits it gives the size of the smallest.
func (s *Sender) fill(tick, from, to int64, set *snapshot.Set) (least int, ok bool) {
	c := &s.chooser
	s.list(set)
	least, c.first, c.how = MaxPacket+1, -1, manner{}
	for alone := 0; alone < patience; {
		if c.first++; c.first == len(c.list) && !s.more(set) {
			c.first = -1
			if alone > 0 {
				return least, false
			}
		}
		for {
			c.out.from, c.out.to = from, to
			size, fits := s.code(tick, set)
			switch {
			case fits:
				return 0, true
			case c.first < 0:
				return size, false
			case !c.how.careful:
				c.how.careful = true
				continue
			case !c.how.alone:
				c.how.alone = true
				continue
			}
			least = min(least, size)
			break
		}
		c.list[c.first].lot = barred
		c.how = manner{}
		alone++
	}
	return least, false
}

// code makes the packet of those first in line. Where the very first does not fit, or another one does not and there is no
// mark to go back to, it says false, and what size it had.
func (s *Sender) code(tick int64, set *snapshot.Set) (size int, ok bool) {
	c, w := &s.chooser, &s.walk
	w.out = &c.out
	s.book.open(&c.out)
	c.out.seq, c.out.tick = s.next, tick
	w.begin(s.prior)
	h := header{seq: s.next, epoch: s.epoch, tick: tick}
	if !w.root {
		h.distance = s.next - s.last
	}
	c.buf = h.append(c.buf[:0])
	head := len(c.buf)
	w.Enc.Reset(c.buf, 0)
	if !w.root {
		w.recent(s.recent())
	}
	w.tick()
	w.agree()
	w.viewer(s.viewer, s.sees)
	w.inputs(&s.inputs)
	c.limit = (s.cfg.Budget - head) * 8
	c.owned, c.ctx, c.next, c.mark.set = false, 0, 0, false
	if s.pickFirst(set); s.updates(set) {
		c.overhead = w.Enc.BitsQ8() - c.needed
		c.buf = w.Enc.Finish()
		return len(c.buf), true
	}
	return head + (w.Enc.Bits()+slack+s.closing()+7)/8, false
}

// updates codes the updates: the viewer's, those of objects with a baseline, and the others.
func (s *Sender) updates(set *snapshot.Set) bool {
	c, w := &s.chooser, &s.walk
	if s.sees && !s.own() {
		return false
	}
	c.owned = true
	bases := w.members()
	for at, i := range c.at[:len(bases)] {
		if i == 0 || c.list[i-1].lot != picked {
			continue
		}
		s.before(int(i - 1))
		w.Bit(&w.out.state.more[c.ctx], true)
		for ; c.next < at; c.next++ {
			if r := bases[c.next]; !s.sees || r.object.ID != s.viewer {
				w.member(r, false)
			}
		}
		was := w.Enc.BitsQ8()
		w.member(bases[at], true)
		c.ctx, c.next = 1, at+1
		if !s.put(int(i-1), was) {
			return false
		}
		s.adjust(set)
	}
	w.Bit(&w.out.state.more[c.ctx], false)
	c.ctx = 2
	if !s.strangers(set) {
		return false
	}
	w.Bit(&w.out.state.more[c.ctx], false)
	return true
}

// own codes the update of the viewer's object, if there is one, and from where places are told.
func (s *Sender) own() bool {
	c, w := &s.chooser, &s.walk
	mine := slices.IndexFunc(c.list, func(x candidate) bool { return x.object.ID == s.viewer && x.lot == picked })
	if mine >= 0 {
		s.before(mine)
		was := w.Enc.BitsQ8()
		w.Bit(&w.out.state.viewer[2], true)
		if !s.put(mine, was) {
			return false
		}
		if x := &c.list[mine]; x.lot == sent {
			if x.row != nil {
				w.sight(x.row)
			}
			return true
		}
	}
	w.Bit(&w.out.state.viewer[2], false)
	if at, ok := w.find(s.viewer); ok {
		w.sight(w.bases[at].row())
	}
	return true
}

// strangers codes the objects without a baseline.
func (s *Sender) strangers(set *snapshot.Set) bool {
	c, w := &s.chooser, &s.walk
	for c.last = -1; ; {
		i := c.stranger()
		if i < 0 {
			return true
		}
		x := &c.list[i]
		s.before(i)
		was, last := w.Enc.BitsQ8(), c.last
		w.Bit(&w.out.state.more[c.ctx], true)
		w.stranger(int64(x.object.ID), c.last)
		c.ctx, c.last = 3, int64(x.object.ID)
		if !s.put(i, was) {
			return false
		}
		if c.list[i].lot != sent {
			c.last = last
		}
		s.adjust(set)
	}
}

// stranger is the picked candidate without a baseline of the lowest id, or -1.
func (c *chooser) stranger() int {
	least := -1
	for i := range c.list[:c.tail] {
		x := &c.list[i]
		if x.lot == picked && x.base < 0 && (least < 0 || x.object.ID < c.list[least].object.ID) {
			least = i
		}
	}
	return least
}
