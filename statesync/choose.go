package statesync

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

// patience is how many objects that do not fit are passed over in a row, and how many are tried alone.
const maxMisfits = 12

// chooser fills packets. It picks the first in line that may fit by what their updates took last, codes them by id, and
// drops the last in line or adds others as more or less room is left than expected.
type chooser struct {
	typical  [2]int // need of an update, without and with a baseline
	overhead int    // of the last packet, beside its updates
	list     []candidate
	at       []int32 // by base: the candidate, + 1
	out      packet
	buf      []byte
	saved    savepoint

	attempt     attempt
	limit       int   // bits of the payload
	first       int   // the candidate that is first in line, or -1
	tail        int   // candidates from here on are not picked
	count       int   // of those that are picked or sent
	pending     int   // need of those picked
	needed      int   // need of those sent
	viewerCoded bool  // it is coded whether the viewer's object is updated
	ctx         int   // of more
	next        int   // the base of which it is coded next whether it is updated
	last        int64 // the last object without a baseline
}

// manner is how a packet is tried.
type attempt struct {
	careful bool // there is a mark before each object
	alone   bool // only the first in line is sent
}

func (c *chooser) init(p *plan) {
	c.typical = [2]int{p.ints * 12 * bit, p.ints * 6 * bit}
	c.saved.state = p.newState()
}

// choose makes the packet and gives its bytes.
func (s *Sender) choose(tick int64, set *snapshot.Set) ([]byte, error) {
	c, smallest := &s.chooser, MaxPacket+1
	for _, room := range [...]int{s.cfg.Budget / 2, -1} { // of inputs
		from, to := s.inputs.next, s.inputs.next
		if room >= 0 {
			from = s.inputs.due(s.cfg.Ticks, room)
		}
		size, ok := s.fill(tick, from, to, set)
		if ok {
			return c.buf, nil
		}
		smallest = size
		if from == to {
			break
		}
	}
	return nil, fmt.Errorf("%w: %d bytes, the smallest update tried takes a packet of %d", ErrBudget, s.cfg.Budget, smallest)
}

// fill makes the packet with the inputs of ticks. Where no update fits it gives the size of the smallest.
func (s *Sender) fill(tick, from, to int64, set *snapshot.Set) (smallest int, ok bool) {
	c := &s.chooser
	s.list(set)
	smallest, c.first, c.attempt = MaxPacket+1, -1, attempt{}
	for alone := 0; alone < maxMisfits; {
		if c.first++; c.first == len(c.list) && !s.more(set) {
			c.first = -1
			if alone > 0 {
				return smallest, false
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
			case !c.attempt.careful:
				c.attempt.careful = true
				continue
			case !c.attempt.alone:
				c.attempt.alone = true
				continue
			}
			smallest = min(smallest, size)
			break
		}
		c.list[c.first].state = excluded
		c.attempt = attempt{}
		alone++
	}
	return smallest, false
}

// code makes the packet of those first in line. Where the very first does not fit, or another one does not and there is no
// mark to go back to, it says false, and what size it had.
func (s *Sender) code(tick int64, set *snapshot.Set) (size int, ok bool) {
	c, pc := &s.chooser, &s.codec
	pc.out = &c.out
	s.store.open(&c.out)
	c.out.seq, c.out.tick = s.next, tick
	pc.begin(s.prior)
	h := header{seq: s.next, epoch: s.epoch, tick: tick}
	if !pc.keyframe {
		h.distance = s.next - s.last
	}
	c.buf = h.append(c.buf[:0])
	head := len(c.buf)
	pc.Enc.Reset(c.buf, 0)
	if !pc.keyframe {
		pc.codeRecent(s.recent())
	}
	pc.codeTick()
	pc.checkHash()
	pc.codeViewerID(s.viewer, s.hasViewer)
	pc.codeInputs(&s.inputs)
	c.limit = (s.cfg.Budget - head) * 8
	c.viewerCoded, c.ctx, c.next, c.saved.set = false, 0, 0, false
	if s.pickFirst(set); s.updates(set) {
		c.overhead = pc.Enc.Used() - c.needed
		c.buf = pc.Enc.Finish()
		return len(c.buf), true
	}
	return head + (pc.Enc.Bits()+slack+s.closingBits()+7)/8, false
}

// updates codes the updates: the viewer's, those of objects with a baseline, and the others.
func (s *Sender) updates(set *snapshot.Set) bool {
	c, pc := &s.chooser, &s.codec
	if s.hasViewer && !s.codeViewer() {
		return false
	}
	c.viewerCoded = true
	bases := pc.members()
	for at, i := range c.at[:len(bases)] {
		if i == 0 || c.list[i-1].state != picked {
			continue
		}
		s.save(int(i - 1))
		pc.Bit(&pc.out.state.more[c.ctx], true)
		for ; c.next < at; c.next++ {
			if r := bases[c.next]; !s.hasViewer || r.object.ID != s.viewer {
				pc.codeMember(r, false)
			}
		}
		was := pc.Enc.Used()
		pc.codeMember(bases[at], true)
		c.ctx, c.next = 1, at+1
		if !s.codeUpdate(int(i-1), was) {
			return false
		}
		s.adjust(set)
	}
	pc.Bit(&pc.out.state.more[c.ctx], false)
	c.ctx = 2
	if !s.codeNewObjects(set) {
		return false
	}
	pc.Bit(&pc.out.state.more[c.ctx], false)
	return true
}

// own codes the update of the viewer's object, if there is one, and from where places are told.
func (s *Sender) codeViewer() bool {
	c, pc := &s.chooser, &s.codec
	mine := slices.IndexFunc(c.list, func(x candidate) bool { return x.object.ID == s.viewer && x.state == picked })
	if mine >= 0 {
		s.save(mine)
		was := pc.Enc.Used()
		pc.Bit(&pc.out.state.viewer[2], true)
		if !s.codeUpdate(mine, was) {
			return false
		}
		if x := &c.list[mine]; x.state == sent {
			if x.row != nil {
				pc.setViewerPosition(x.row)
			}
			return true
		}
	}
	pc.Bit(&pc.out.state.viewer[2], false)
	if at, ok := pc.find(s.viewer); ok {
		pc.setViewerPosition(pc.bases[at].row())
	}
	return true
}

// strangers codes the objects without a baseline.
func (s *Sender) codeNewObjects(set *snapshot.Set) bool {
	c, pc := &s.chooser, &s.codec
	for c.last = -1; ; {
		i := c.nextNewObject()
		if i < 0 {
			return true
		}
		x := &c.list[i]
		s.save(i)
		was, last := pc.Enc.Used(), c.last
		pc.Bit(&pc.out.state.more[c.ctx], true)
		pc.codeNewID(int64(x.object.ID), c.last)
		c.ctx, c.last = 3, int64(x.object.ID)
		if !s.codeUpdate(i, was) {
			return false
		}
		if c.list[i].state != sent {
			c.last = last
		}
		s.adjust(set)
	}
}

// stranger is the picked candidate without a baseline of the lowest id, or -1.
func (c *chooser) nextNewObject() int {
	smallest := -1
	for i := range c.list[:c.tail] {
		x := &c.list[i]
		if x.state == picked && x.base < 0 && (smallest < 0 || x.object.ID < c.list[smallest].object.ID) {
			smallest = i
		}
	}
	return smallest
}
