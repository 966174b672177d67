package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// save sets a savepoint if candidate i may not fit.
func (s *Sender) save(i int) {
	c, pc := &s.builder, &s.codec
	m := &c.saved
	left := c.limit*bit - pc.Enc.BitsQ8()
	if m.set = c.careful || left < 2*c.list[i].need+128*bit; !m.set {
		return
	}
	m.enc.CopyFrom(&pc.Enc)
	m.state.copyFrom(pc.out.state)
	m.updates, m.neighbors, m.ctx, m.next = len(pc.out.updates), pc.neighbors.n, c.ctx, c.next
}

// codeUpdate codes the update of candidate i and removes it again if it does not fit. was is the
// size before. It reports false if the update must not be or cannot be removed.
func (s *Sender) codeUpdate(i, was int) bool {
	c, pc := &s.builder, &s.codec
	x := &c.list[i]
	to := pc.newRecord(x.object.ID)
	to.object, to.gone = x.object, x.row == nil
	var base *record
	if x.base >= 0 {
		base = pc.bases[x.base]
	}
	pc.codeUpdate(to, base, x.row)
	c.pending -= x.need
	x.need = max(pc.Enc.BitsQ8()-was, 1)
	if x.row != nil {
		s.objects.at(x.object.ID).bits[x.with] = uint16(min((x.need+needUnit-1)/needUnit, 1<<16-1))
		t := &c.typical[x.with]
		*t = max(1, *t+(x.need-*t)/16)
	}
	if s.fits(i) {
		x.state = sent
		c.needed += x.need
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
	pc.neighbors.n, c.ctx, c.next = m.neighbors, m.ctx, m.next
	return true
}

// slack is for rounding, and for the last byte of a payload, in bits.
const slack = 2

// fits reports whether the packet can end after candidate i and leaves space for the first
// candidate.
func (s *Sender) fits(i int) bool {
	c := &s.builder
	reserve := 0
	if c.first >= 0 && c.first != i && c.list[c.first].state == picked {
		reserve = (c.list[c.first].need*5/4)/bit + 32
	}
	return s.codec.Enc.Bits()+slack+s.closingBits()+reserve <= c.limit
}

// closingBits returns an upper bound of the bits that end the list of updates.
func (s *Sender) closingBits() int {
	m := &s.codec.out.state.more
	n := falseBits(m[s.builder.ctx])
	if s.builder.ctx < 2 {
		n += falseBits(m[2])
	}
	return n
}

// falseBits returns an upper bound of the bits that code the decision false.
func falseBits(c rangecoder.Prob) int { return 17 - bits.Len32(65536-uint32(c.P)) }
