package adaptive

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// keyframe codes a frame without a reference by a static code. A group of numbers is coded as the
// length of its longest magnitude in bits, followed by each magnitude with this length.
func (c *payloadCodec[M]) keyframe(frame *schema.Frame) error {
	for i := range c.m.groups {
		g := &c.m.groups[i]
		var err error
		switch g.form {
		case formNumbers:
			err = c.keyframeNumbers(frame.Ints, g)
		case formQuat:
			err = c.keyframeQuat(frame.Ints[g.at:][:4], g)
		case formBits:
			for k := range g.numComps {
				c.keyframeFlat(frame.Ints, &c.m.bitSets[g.firstComp+k])
				c.keyframeCost(g, k)
			}
		case formBytes:
			err = c.keyframeBytes(frame, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keyframeCost reports the cost of component k.
func (c *payloadCodec[M]) keyframeCost(g *group, k int) {
	if c.measures() {
		c.meter.Component(g.field, k, c.spent(), cost.ByNone, cost.NoResidual)
	}
}

func (c *payloadCodec[M]) keyframeNumbers(ints []int32, g *group) error {
	comps := c.m.components[g.firstComp:][:g.numComps]
	n := uint(0)
	if !g.noLength {
		if !c.decodes() {
			n = magnitudeBits(ints, comps)
		}
		if n = uint(c.raw(uint64(n), g.lengthBits)); n > g.maxLength {
			return ErrMalformed
		}
	}
	if c.measures() {
		c.meter.Flags(g.field, c.spent())
	}
	for k := range comps {
		if g.noLength {
			c.keyframeFlat(ints, &comps[k])
		} else if !c.keyframeNumber(ints, g, &comps[k], n) {
			return ErrMalformed
		}
		c.keyframeCost(g, k)
	}
	return nil
}

// keyframeNumber codes a component whose magnitude has at most n bits. It reports whether the value
// is in range.
func (c *payloadCodec[M]) keyframeNumber(ints []int32, g *group, cp *component, n uint) bool {
	v := cp.int64Of(ints[cp.at])
	x := int64(c.raw(uint64(max(v, -v)), n))
	if g.hasSigns && x != 0 && c.bit(v < 0, 1<<15) {
		x = -x
	}
	if c.decodes() {
		ints[cp.at] = cp.fit(x)
		return cp.int64Of(ints[cp.at]) == x
	}
	return true
}

// keyframeFlat codes a component as one bit if it is 0, otherwise as all its bits.
func (c *payloadCodec[M]) keyframeFlat(ints []int32, cp *component) {
	v := uint64(uint32(ints[cp.at]))
	if c.bit(v != 0, 1<<15) {
		if cp.wrap > 1 {
			v = c.raw(v, cp.wrap)
		} else {
			v = 1
		}
	} else {
		v = 0
	}
	if c.decodes() {
		ints[cp.at] = int32(uint32(v))
	}
}

func (c *payloadCodec[M]) keyframeQuat(ints []int32, g *group) error {
	idx := c.raw(uint64(ints[0]), 2)
	if c.decodes() {
		ints[0] = int32(idx)
	} else if c.measures() {
		c.meter.Flags(g.field, c.spent())
	}
	for i := range 3 {
		v := c.raw(uint64(ints[1+i]+g.quatMax), g.quatBits)
		if v > uint64(2*g.quatMax) {
			return ErrMalformed
		}
		if c.decodes() {
			ints[1+i] = int32(v) - g.quatMax
		}
		c.keyframeCost(g, i)
	}
	return nil
}

func (c *payloadCodec[M]) keyframeBytes(frame *schema.Frame, g *group) (err error) {
	b := frame.Bytes[g.blob]
	n := len(b)
	if c.decodes() {
		n = g.minBytes
	}
	if g.minBytes < g.maxBytes {
		if n, err = c.length(g, n); err != nil {
			return err
		}
	}
	if c.decodes() {
		b = slices.Grow(b[:0], n)[:n]
		frame.Bytes[g.blob] = b
	}
	for i := range b {
		if v := byte(c.raw(uint64(b[i]), 8)); c.decodes() {
			b[i] = v
		}
	}
	if c.measures() {
		c.meter.Contents(g.field, c.spent())
	}
	return nil
}

// keyframeSize counts the bits of the static code. Zeros at the end of a payload are not sent.
type keyframeSize struct {
	bits uint
	used uint   // bits up to the last value that is not 0
	last uint32 // last value that is not 0
}

// setLast records a value that is not 0 and ends here.
func (s *keyframeSize) setLast(v uint32) { s.used, s.last = s.bits, v }

func (s *keyframeSize) quat(ints []int32, g *group) {
	s.bits += 2
	if ints[0] != 0 {
		s.setLast(uint32(ints[0]))
	}
	for _, v := range ints[1:] {
		s.bits += g.quatBits
		if v != -g.quatMax {
			s.setLast(uint32(v + g.quatMax))
		}
	}
}

func (s *keyframeSize) flat(ints []int32, comps []component) {
	for i := range comps {
		s.bits++
		v := ints[comps[i].at]
		switch w := comps[i].wrap; {
		case v == 0:
		case w > 1:
			s.bits += w
			s.setLast(uint32(v))
		default:
			s.setLast(1)
		}
	}
}

func (s *keyframeSize) numbers(ints []int32, comps []component, g *group) {
	n := magnitudeBits(ints, comps)
	s.bits += g.lengthBits
	if n == 0 {
		return
	}
	s.setLast(uint32(n))
	for i := range comps {
		s.bits += n
		v := ints[comps[i].at]
		if v == 0 {
			continue
		}
		s.setLast(uint32(v))
		if g.hasSigns {
			s.bits++
		}
		if g.hasSigns && v < 0 {
			s.setLast(1)
		}
	}
}

func (s *keyframeSize) bytes(b []byte, g *group) {
	if g.minBytes < g.maxBytes {
		s.bits += uint(bits.Len(uint(g.maxBytes - g.minBytes)))
		if n := len(b) - g.minBytes; n != 0 {
			s.setLast(uint32(n))
		}
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			s.used, s.last = s.bits+8*uint(i+1), uint32(b[i])
			break
		}
	}
	s.bits += 8 * uint(len(b))
}

// magnitudeBits returns the length of the longest magnitude, in bits.
func magnitudeBits(ints []int32, comps []component) uint {
	all := uint64(0)
	for i := range comps {
		v := comps[i].int64Of(ints[comps[i].at])
		all |= uint64(max(v, -v))
	}
	return uint(bits.Len64(all))
}
