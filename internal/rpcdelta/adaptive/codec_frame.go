package adaptive

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// frame codes one frame against its reference.
func (c *payloadCodec[M]) frame(frame *schema.Frame, l *modelState) (err error) {
	m, p := c.m, &c.refs
	if c.decodes() {
		p.compare(&schema.Frame{Ints: p.ref, Bytes: p.refBytes})
	} else {
		p.compare(frame)
	}
	c.context = residualContext{}
	var last, buttons flagInputs
	for i := range m.groups {
		g := &m.groups[i]
		lg := &l.groups[i]
		x := p.groupInputs(g) | last | buttons
		changed := x&frameChanged != 0
		if g.counter && !c.decodes() && lg.steps() {
			changed = !m.followsStep(p, g, frame)
		}
		p0 := 1<<16 - lg.w.probability(lg.bias[p.class], x)
		if c.measures() {
			c.noteBit(changed, p0)
		}
		if c.decodes() {
			changed = c.dec.BitNoRenorm(p0)
			c.dec.Renorm()
		} else {
			c.enc.BitNoRenorm(changed, p0)
			c.enc.Renorm()
		}
		if c.measures() {
			c.meter.Flags(g.field, c.spent())
		}
		last = lastFlagInput(changed)
		switch {
		case !changed && !c.decodes() && !c.measures():
		case !changed:
			c.unchanged(g, frame, lg.steps())
		case g.form == formNumbers:
			err = c.numbers(frame.Ints, g, l)
		case g.form == formQuat:
			err = c.quat(frame.Ints, g, l)
		case g.form == formBits:
			c.bitSet(frame.Ints, g, l)
			buttons = buttonsChanged
		default:
			err = c.bytes(frame, g, &l.bitModels.bytes[g.index])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unchanged copies a group from its reference while decoding. If steps is set, a counter continues
// at its last rate.
func (c *payloadCodec[M]) unchanged(g *group, frame *schema.Frame, steps bool) {
	if c.measures() {
		for k := range g.numComps {
			c.meter.Component(g.field, k, 0, cost.ByRest, cost.NoResidual)
		}
	}
	switch {
	case !c.decodes():
	case g.form == formBytes:
		frame.Bytes[g.blob] = append(frame.Bytes[g.blob][:0], c.refs.refBytes[g.blob]...)
	case steps:
		for k := range g.numComps {
			cp := &c.m.components[g.firstComp+k]
			frame.Ints[cp.at] = nextStep(&c.refs, cp)
		}
	default:
		copy(frame.Ints[g.at:g.at+g.n], c.refs.ref[g.at:g.at+g.n])
	}
}

// numbers codes a changed group of numbers: a flag, then a frequent value or a residual per
// component.
func (c *payloadCodec[M]) numbers(ints []int32, g *group, l *modelState) error {
	p := &c.refs
	var last flagInputs
	any := false
	c.context.near = 0
	comps := c.m.components[g.firstComp:][:g.numComps]
	states := l.components[g.firstComp:][:len(comps)]
	for k := range comps {
		cp, lc := &comps[k], &states[k]
		v, ref := ints[cp.at], p.ref[cp.at]
		if g.numComps > 1 && (any || k < g.numComps-1) {
			x := flagInputs(p.diffs[cp.at]) | last
			changed := v != ref
			p0 := 1<<16 - lc.flag.w.probability(lc.flag.bias, x)
			if c.measures() {
				c.noteBit(changed, p0)
			}
			if c.decodes() {
				changed = c.dec.BitNoRenorm(p0)
				c.dec.Renorm()
			} else {
				c.enc.BitNoRenorm(changed, p0)
				c.enc.Renorm()
			}
			if c.measures() {
				c.meter.Flags(g.field, c.spent())
			}
			last = lastFlagInput(changed)
			if !changed {
				if c.decodes() {
					ints[cp.at] = ref
				} else if c.measures() {
					c.meter.Component(g.field, k, 0, cost.ByRest, cost.NoResidual)
				}
				continue
			}
		}
		if cp.list >= 0 {
			if x, ok := c.frequentValue(&l.lists[cp.list].frequentValues, v, ref); ok {
				any = true
				if c.decodes() {
					ints[cp.at] = x
				} else if c.measures() {
					c.meter.Component(g.field, k, c.spent(), cost.ByValue, cost.NoResidual)
				}
				continue
			}
		}
		pred, x := c.forecast(l, ints, g, cp, lc, k)
		r := int64(0)
		if !c.decodes() {
			r = wrapTo(int64(v)-int64(pred), cp.wrap)
		}
		r, size := c.residual(r, x)
		if c.decodes() {
			v = cp.fit(int64(pred) + r)
			if wrapTo(int64(v)-int64(pred), cp.wrap) != r {
				return ErrMalformed
			}
			ints[cp.at] = v
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
		}
		any = any || v != ref
		c.context.observe(size, x.magnitude)
	}
	return nil
}

// frequentValue codes v by its rank in the list. It returns false if v is not in the list, and a
// residual must follow.
func (c *payloadCodec[M]) frequentValue(l *frequentValues, v, ref int32) (int32, bool) {
	if !l.enabled {
		return v, false
	}
	rank := -1
	if !c.decodes() && v != ref {
		rank = l.rank(v)
	}
	if !c.bit(rank >= 0, 1<<16-uint32(l.anyProb)) {
		return v, false
	}
	last := l.lastRank(ref)
	for i := range last {
		if l.values[i] != ref && c.bit(rank == i, 1<<16-uint32(l.rankProb[i])) {
			return l.values[i], true
		}
	}
	return l.values[max(0, last)], true
}

// bitSet codes a changed bit set: one flag per bit, which is set if the bit changes.
func (c *payloadCodec[M]) bitSet(ints []int32, g *group, l *modelState) {
	bi := g.index
	for k := range g.numComps {
		cp := &c.m.bitSets[g.firstComp+k]
		ref := uint32(c.refs.ref[cp.at])
		recent := ref ^ uint32(c.refs.h1[cp.at])
		flips := uint32(ints[cp.at]) ^ ref
		v := ref
		for j := range cp.wrap {
			if c.bit(flips>>j&1 == 1, uint32(l.bitModels.bits[bi][ref>>j&1|recent>>j&1<<1])) {
				v ^= 1 << j
			}
			bi++
		}
		if c.decodes() {
			ints[cp.at] = int32(v)
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), cost.ByHold, cost.NoResidual)
		}
	}
}

// quat codes a changed quaternion: the index of the largest element, then a residual per component.
func (c *payloadCodec[M]) quat(ints []int32, g *group, l *modelState) error {
	p := &c.refs
	want := l.wantedFeatures(g, p)
	c.orient.predict(p, ints, g, want)
	idx := c.quatIndex(int(ints[g.at])&3, l.bitModels.index[g.index][c.orient.ambiguity])
	if c.decodes() {
		ints[g.at] = int32(idx)
	} else if c.measures() {
		c.meter.Flags(g.field, c.spent())
	}
	c.orient.toComponents(g, idx, want)
	c.context.near = 0
	for k := range g.numComps {
		cp := &c.m.components[g.firstComp+k]
		lc := &l.components[g.firstComp+k]
		off := p.quatOffset(&c.orient.features[k], g, lc)
		pred := int64(cp.fit(c.orient.ref[k] + off))
		x := lc.expect(p, &c.context, off)
		r, size := c.residual(int64(ints[cp.at])-pred, x)
		if c.decodes() {
			v := pred + r
			if v < cp.lo || v > cp.hi {
				return ErrMalformed
			}
			ints[cp.at] = int32(v)
		} else if c.measures() {
			c.meter.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
		}
		c.context.observe(size, x.magnitude)
	}
	return nil
}

// Probabilities in units of 1/65536, for quaternions whose predicted index is wrong: firstOther
// that the index is the most likely of the other three, and secondOther, if it is not, that it is
// the second most likely.
const (
	firstOther  = 59536
	secondOther = 49536
)

// quatIndex codes the index of the largest element. probability is the probability of the predicted
// index.
func (c *payloadCodec[M]) quatIndex(idx int, probability uint16) int {
	if !c.bit(idx != c.orient.index, uint32(probability)) {
		return c.orient.index
	}
	o := c.orient.otherIndexes()
	switch {
	case !c.bit(idx != o[0], firstOther):
		return o[0]
	case !c.bit(idx != o[1], secondOther):
		return o[1]
	}
	return o[2]
}

// bytes codes a changed byte string.
func (c *payloadCodec[M]) bytes(frame *schema.Frame, g *group, b *bytesModel) (err error) {
	ref, prev := c.refs.refBytes[g.blob], c.refs.prevBytes[g.blob]
	x, n := frame.Bytes[g.blob], len(ref)
	if g.minBytes < g.maxBytes && c.bit(len(x) != n, sameLengthProb) {
		if n, err = c.length(g, len(x)); err != nil {
			return err
		}
	}
	if c.decodes() {
		x = slices.Grow(x[:0], n)[:n]
		frame.Bytes[g.blob] = x
	}
	neighbor := false
	for i := range min(n, len(ref)) {
		v := x[i] ^ ref[i]
		neighbor = c.bit(v != 0, uint32(*b.context(neighbor, i, ref, prev)))
		if neighbor {
			v = c.changedByte(v, &b.bitUnchanged)
		} else {
			v = 0
		}
		if c.decodes() {
			x[i] = v ^ ref[i]
		}
	}
	for i := len(ref); i < n; i++ {
		if v := byte(c.raw(uint64(x[i]), 8)); c.decodes() {
			x[i] = v
		}
	}
	if c.measures() {
		c.meter.Contents(g.field, c.spent())
	}
	return nil
}

// changedByte codes the bits v that change in a byte.
func (c *payloadCodec[M]) changedByte(v byte, unchanged *[16]uint16) (out byte) {
	high := 0
	for j := 7; j >= 0; j-- {
		if c.bit(v>>j&1 == 1, uint32(unchanged[j<<1|high])) {
			out |= 1 << j
			high = 1
		}
	}
	return out
}
