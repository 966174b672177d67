package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// mark is what was before an object, to go back to if it does not fit.
type mark struct {
	set     bool
	enc     rangecoder.Encoder
	state   *state
	updates int
	around  int
	ctx     int
	next    int
}

// before sets a mark where the object that is coded next may not fit.
func (s *Sender) before(i int) {
	c, w := &s.chooser, &s.walk
	m := &c.mark
	left := c.limit*bit - w.Enc.BitsQ8()
	if m.set = c.how.careful || left < 2*c.list[i].need+128*bit; !m.set {
		return
	}
	m.enc.CopyFrom(&w.Enc)
	m.state.copyFrom(w.out.state)
	m.updates, m.around, m.ctx, m.next = len(w.out.updates), w.around.n, c.ctx, c.next
}

// put codes an object, and takes it back if it does not fit. It says false where that cannot be, or must not.
func (s *Sender) put(i, was int) bool {
	c, w := &s.chooser, &s.walk
	x := &c.list[i]
	to := w.fresh(x.object.ID)
	to.object, to.gone = x.object, x.row == nil
	var base *record
	if x.base >= 0 {
		base = w.bases[x.base]
		to.of = base.of
	}
	w.update(to, base, x.row)
	c.pending -= x.need
	x.need = max(w.Enc.BitsQ8()-was, 1)
	if x.row != nil {
		s.objects.at(x.object.ID).bits[x.with()] = uint16(min((x.need+needUnit-1)/needUnit, 1<<16-1))
		t := &c.typical[x.with()]
		*t = max(1, *t+(x.need-*t)/16)
	}
	if s.fits(i) {
		x.lot = sent
		c.needed += x.need
		return true
	}
	if i == c.first || !c.mark.set {
		return false
	}
	x.lot = failed
	c.count--
	m := &c.mark
	w.Enc.CopyFrom(&m.enc)
	w.out.state.copyFrom(m.state)
	s.book.discard(w.out, m.updates)
	w.around.n, c.ctx, c.next = m.around, m.ctx, m.next
	return true
}

// slack is for the bits of a payload's last byte, and what is rounded.
const slack = 2

// fits says whether the packet can be ended after an object, and has room for the first in line if that is still to come.
func (s *Sender) fits(i int) bool {
	c := &s.chooser
	reserve := 0
	if c.first >= 0 && c.first != i && c.list[c.first].lot == picked {
		reserve = (c.list[c.first].need*5/4)/bit + 32
	}
	return s.walk.Enc.Bits()+slack+s.closing()+reserve <= c.limit
}

// closing is at least what it takes to say that no more objects follow.
func (s *Sender) closing() int {
	m := &s.walk.out.state.more
	n := unlikely(m[s.chooser.ctx])
	if s.chooser.ctx < 2 {
		n += unlikely(m[2])
	}
	return n
}

// unlikely is at least how many bits it takes to say that a decision is false.
func unlikely(c rangecoder.Prob) int { return 17 - bits.Len32(65536-uint32(c.P)) }
