package statesync

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

func (s *Sender) choose(tick int64) ([]byte, error) {
	c, smallest := &s.builder, MaxPacket+1
	for _, room := range [...]int{s.cfg.Budget / 2, -1} { // maximum bytes of inputs; -1 means no inputs
		from, to := s.inputs.next, s.inputs.next
		if room >= 0 {
			from = s.inputs.due(s.cfg.Ticks, room)
		}
		size, ok := s.fill(tick, from, to)
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

// fill encodes a packet with the inputs of ticks from up to, not including, to. If no update fits,
// it returns the size of the smallest packet tried.
func (s *Sender) fill(tick, from, to int64) (smallest int, ok bool) {
	c := &s.builder
	s.list()
	smallest, c.first = MaxPacket+1, -1
	for alone := range maxMisfits {
		if c.first++; c.first == len(c.list) && !s.more() {
			if c.first = -1; alone > 0 {
				return smallest, false
			}
		}
		size := 0
		for c.attempt = range attempts {
			c.out.from, c.out.to = from, to
			if size, ok = s.code(tick); ok || c.first < 0 {
				return size, ok
			}
		}
		smallest = min(smallest, size)
		c.list[c.first].state = excluded
	}
	return smallest, false
}

// code encodes a packet with the first candidates. If the first one does not fit, or another one
// does not and there is no savepoint, it reports false and returns the size.
func (s *Sender) code(tick int64) (size int, ok bool) {
	c, pc := &s.builder, &s.codec
	pc.out = &c.out
	s.store.open(&c.out)
	c.out.seq, c.out.tick = s.next, tick
	pc.begin(s.world.prior)
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
	c.viewerCoded, c.size, c.ctx, c.next, c.saved.set = false, pc.Enc.BitsQ8(), 0, 0, false
	if s.pickFirst(); s.updates() {
		s.overhead = pc.Enc.BitsQ8() - c.needed
		c.buf = pc.Enc.Finish()
		return len(c.buf), true
	}
	return head + (pc.Enc.Bits()+slack+s.closingBits()+7)/8, false
}

// updates codes the updates in this order: the viewer object, objects with a baseline, other
// objects. It reports false if the packet must be coded again.
func (s *Sender) updates() bool {
	c, pc := &s.builder, &s.codec
	if s.hasViewer && !s.codeViewer() {
		return false
	}
	c.viewerCoded, c.size = true, pc.Enc.BitsQ8()
	bases, viewer := pc.members(), -1
	if s.hasViewer {
		viewer = int(s.viewer)
	}
	for at, i := range c.at[:len(bases)] {
		if i == 0 || c.list[i-1].state != picked {
			continue
		}
		s.save(int(i - 1))
		pc.Bit(&pc.out.state.more[c.ctx], true)
		pc.omit(bases[c.next:at], viewer)
		was := pc.Enc.BitsQ8()
		pc.codeMember(&bases[at], true)
		c.ctx, c.next = 1, at+1
		if !s.codeUpdate(int(i-1), was) {
			return false
		}
		s.adjust()
	}
	pc.Bit(&pc.out.state.more[c.ctx], false)
	c.ctx, c.size = 2, pc.Enc.BitsQ8()
	if !s.codeNewObjects() {
		return false
	}
	pc.Bit(&pc.out.state.more[c.ctx], false)
	return true
}

// codeViewer codes the update of the viewer object, if it is picked, and sets its position.
func (s *Sender) codeViewer() bool {
	c, pc := &s.builder, &s.codec
	mine := slices.IndexFunc(c.list, func(x candidate) bool { return x.id == s.viewer && x.state == picked })
	if mine >= 0 {
		s.save(mine)
		was := pc.Enc.BitsQ8()
		pc.Bit(&pc.out.state.viewer[2], true)
		if !s.codeUpdate(mine, was) {
			return false
		}
		if x := &c.list[mine]; x.state == sent {
			if x.at >= 0 {
				pc.setViewerPosition(s.world.objects[x.at].row)
			}
			return true
		}
	}
	pc.Bit(&pc.out.state.viewer[2], false)
	if at := pc.find(s.viewer); at >= 0 {
		pc.setViewerPosition(pc.unpack(at))
	}
	return true
}

func (s *Sender) codeNewObjects() bool {
	c, pc := &s.builder, &s.codec
	for c.last = -1; ; {
		i := c.nextNewObject()
		if i < 0 {
			return true
		}
		x := &c.list[i]
		s.save(i)
		was, last := pc.Enc.BitsQ8(), c.last
		pc.Bit(&pc.out.state.more[c.ctx], true)
		pc.codeNewID(int64(x.id), c.last)
		c.ctx, c.last = 3, int64(x.id)
		if !s.codeUpdate(i, was) {
			return false
		}
		if c.list[i].state != sent {
			c.last = last
		}
		s.adjust()
	}
}

// nextNewObject returns the picked candidate without a baseline that has the lowest id, or -1.
func (c *packetBuilder) nextNewObject() int {
	smallest := -1
	for i := range c.list[:c.tail] {
		x := &c.list[i]
		if x.state == picked && x.base < 0 && (smallest < 0 || x.id < c.list[smallest].id) {
			smallest = i
		}
	}
	return smallest
}

// save sets a savepoint if candidate i may not fit.
func (s *Sender) save(i int) {
	c, pc := &s.builder, &s.codec
	m := &c.saved
	left := c.limit*bit - c.size
	if m.set = c.attempt >= withSavepoints || left < 2*int(c.list[i].need)+128*bit; !m.set {
		return
	}
	m.enc.CopyFrom(&pc.Enc)
	m.state.copyFrom(pc.out.state)
	m.updates, m.size, m.ctx, m.next = len(pc.out.sent), c.size, c.ctx, c.next
}

// codeUpdate codes the update of candidate i. was is the size of the coded part before it, in 1/256
// bit. If the update does not fit, codeUpdate restores the savepoint. If there is none, or the
// candidate is the first, it reports false.
func (s *Sender) codeUpdate(i, was int) bool {
	c, pc := &s.builder, &s.codec
	x := &c.list[i]
	to := pc.newRecord(x.id)
	var base *record
	if x.base >= 0 {
		base = pc.baseline(x.base)
	}
	if to.gone = x.at < 0; to.gone {
		pc.codeUpdate(to, base, nil)
	} else {
		now := &s.world.objects[x.at]
		to.object = now.Object
		pc.codeUpdate(to, base, now)
	}
	pc.out.sent = append(pc.out.sent, to.identity)
	c.pending -= int(x.need)
	c.size = pc.Enc.BitsQ8()
	need := max(c.size-was, 1)
	x.need = int32(need)
	if x.at >= 0 {
		s.store.objects.at(x.id).bits[x.with] = uint16(min((need+needUnit-1)/needUnit, 1<<16-1))
		t := &s.typical[x.with]
		*t = max(1, *t+(need-*t)/16)
	}
	if s.fits(i) {
		x.state = sent
		c.needed += need
		return true
	}
	if i == c.first || !c.saved.set {
		return false
	}
	x.state = failed
	c.count--
	m := &c.saved
	pc.Enc.CopyFrom(&m.enc)
	pc.out.state.copyFrom(m.state)
	s.store.discard(pc.out, m.updates)
	c.size, c.ctx, c.next = m.size, m.ctx, m.next
	return true
}

// slack is the number of bits reserved for rounding and for the last byte of a payload.
const slack = 2

// fits reports whether the packet can end after candidate i, with space for the first candidate if
// that is not coded yet.
func (s *Sender) fits(i int) bool {
	c := &s.builder
	reserve := 0
	if c.first >= 0 && c.first != i && c.list[c.first].state == picked {
		reserve = (int(c.list[c.first].need)*5/4)/bit + 32
	}
	left := c.limit - (c.size-1)/bit - slack - reserve // rounded as in Encoder.Bits
	return left >= maxClosingBits || left >= s.closingBits()
}

// closingBits returns an upper bound of the number of bits that end the list of updates.
func (s *Sender) closingBits() int {
	m := &s.codec.out.state.more
	n := falseBits(m[s.builder.ctx])
	if s.builder.ctx < 2 {
		n += falseBits(m[2])
	}
	return n
}

// maxClosingBits is an upper bound of closingBits.
const maxClosingBits = 2 * 17

// falseBits returns an upper bound of the number of bits that code a false decision.
func falseBits(c rangecoder.Prob) int { return 17 - bits.Len32(65536-uint32(c.P)) }
