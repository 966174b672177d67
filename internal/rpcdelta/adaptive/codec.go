package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
)

// payloadCodec encodes, decodes or measures payloads, depending on its mode. The mode is a type
// parameter so that one description of the format serves all three without branches at run time:
// the compiler generates a copy of the methods for each mode, in which decodes and measures are
// constant. While decoding, the values passed to bit, raw and residual are ignored.
type payloadCodec[M mode] struct {
	m   *Model
	enc rangecoder.Encoder // encoding, measuring
	dec rangecoder.Decoder // decoding
	frameContext

	oldest int        // encoding: bits of the payload after its oldest frame
	meter  cost.Meter // measuring: receives the cost of each part
	cost   float64    // measuring: bits encoded at the last call of spent
	buf    []byte     // measuring: output, discarded
	trace  func(step) // measuring: receives each step of the range coder; nil except in tests
}

// step is an operation of the range coder: a decision with the probability p0 of false, a symbol of
// a table, or raw bits.
type step struct {
	value      uint64
	p0         uint32 // probability of false; decisions only
	bits       uint   // number of raw bits
	shape, row int    // table; symbols only
	kind       stepKind
}

type stepKind uint8

const (
	stepBit stepKind = iota
	stepRaw
	stepSymbol
)

// note passes a step to the trace.
func (c *payloadCodec[M]) note(s step) {
	if c.trace != nil {
		c.trace(s)
	}
}

// noteBit passes a decision to the trace.
func (c *payloadCodec[M]) noteBit(b bool, p0 uint32) {
	s := step{kind: stepBit, p0: p0}
	if b {
		s.value = 1
	}
	c.note(s)
}

// frameContext is the state that predictions of the current frame depend on.
type frameContext struct {
	refs    refFrames
	orient  orientation
	context residualContext
}

// mode is the task of a payloadCodec. The types differ in size because the compiler shares one copy
// of the code between types of the same size.
type mode interface {
	encoding | decoding | measuring
}

type (
	encoding  [0]byte
	decoding  [1]byte
	measuring [2]byte
)

func (c *payloadCodec[M]) decodes() bool {
	var m M
	return len(m) == len(decoding{})
}

func (c *payloadCodec[M]) measures() bool {
	var m M
	return len(m) == len(measuring{})
}

// bit codes a decision. p0 is the probability of false, of 65536.
// [payloadCodec.frame] and [payloadCodec.numbers] repeat it, since it is too large to be inlined.
func (c *payloadCodec[M]) bit(b bool, p0 uint32) bool {
	if c.measures() {
		c.noteBit(b, p0)
	}
	if c.decodes() {
		b = c.dec.BitNoRenorm(p0)
		c.dec.Renorm()
	} else {
		c.enc.BitNoRenorm(b, p0)
		c.enc.Renorm()
	}
	return b
}

// raw codes the low n bits of v, n at most 64.
func (c *payloadCodec[M]) raw(v uint64, n uint) uint64 {
	if c.decodes() {
		return c.dec.Raw(n)
	}
	if c.measures() && n > 0 {
		c.note(step{kind: stepRaw, value: v, bits: n})
	}
	c.enc.Raw(v, n)
	return v
}

// spent returns the bits encoded since its last call.
func (c *payloadCodec[M]) spent() float64 {
	before := c.cost
	c.cost = c.enc.Cost()
	return c.cost - before
}

// length codes the length n of a byte string.
func (c *payloadCodec[M]) length(g *group, n int) (int, error) {
	n = g.minBytes + int(c.raw(uint64(n-g.minBytes), uint(bits.Len(uint(g.maxBytes-g.minBytes)))))
	if n > g.maxBytes {
		return 0, ErrMalformed
	}
	return n, nil
}

// residual codes r, which is ignored while decoding, and returns it with its magnitude. A decoded
// residual is within 2^62 of 0.
func (c *payloadCodec[M]) residual(r int64, x expectation) (int64, int32) {
	row, shift := tableFor(x.magnitude)
	table := &c.m.tables.sets[x.shape][row]
	if c.decodes() {
		sym := c.dec.Symbol(table)
		base, n := fromSymbol(sym)
		n += shift
		size := magnitudes[sym&(symbols-1)] + int32(shift<<10)
		if base == 0 { // a sign bit follows only if any magnitude bit is set
			m := int64(c.dec.Raw(n))
			if m != 0 && c.dec.Raw(1) == 1 {
				return -m, size
			}
			return m, size
		}
		v := c.dec.Raw(n + 1)
		m := int64(base<<shift | v>>1)
		sign := -int64(v & 1)
		return m ^ sign - sign, size
	}
	m := uint64(max(r, -r))
	sym, n := symbolOf(m >> shift)
	n += shift
	if t := c.m.tables.tally; t != nil {
		t.count(x.shape, row, sym)
	}
	v := m & (1<<n - 1)
	size := magnitudes[sym&(symbols-1)] + int32(shift<<10)
	if c.measures() {
		c.noteResidual(r, x.shape, row, sym, v, n)
	}
	if sym == 0 {
		c.enc.SymbolRaw(table, sym, v, n)
		if m != 0 {
			c.enc.Raw(uint64(r)>>63, 1)
		}
		return r, size
	}
	c.enc.SymbolRaw(table, sym, v<<1|uint64(r)>>63, n+1)
	return r, size
}

// noteResidual passes the steps of residual r to the trace.
func (c *payloadCodec[M]) noteResidual(r int64, shape uint8, row, sym int, v uint64, n uint) {
	sign := uint64(r) >> 63
	c.note(step{kind: stepSymbol, value: uint64(sym), shape: int(shape), row: row})
	switch {
	case sym != 0:
		c.note(step{kind: stepRaw, value: v<<1 | sign, bits: n + 1})
	case n > 0:
		c.note(step{kind: stepRaw, value: v, bits: n})
		if r != 0 {
			c.note(step{kind: stepRaw, value: sign, bits: 1})
		}
	}
}

// payload codes the number of frames, whether earlier payloads contain the first, then each frame
// against the one before it. The error is [ErrBaseline] or, while decoding, [ErrMalformed].
func (c *payloadCodec[M]) payload(p *Payload, s *State, known *Frames) error {
	v, l := s.open(p, known)
	if l == nil {
		return ErrBaseline
	}
	c.m = s.m
	n := c.count(&l.counts, len(p.Frames), p.maxFrames())
	if n > len(p.Frames) {
		return ErrMalformed
	}
	p.Frames = p.Frames[:n]
	p.Repeats = n > 1 && c.bit(p.Repeats, uint32(l.counts.repeats[l.counts.repeated]))
	if c.measures() {
		c.meter.Count(c.spent())
	}
	v.first = int64(p.Newest) - int64(len(p.Frames)) + 1
	v.gap = span{v.base, v.first}
	ref := v.base
	for i, frame := range p.Frames {
		if c.measures() {
			c.meter.Frame(i)
		}
		v.frames = p.Frames[:i]
		seq := v.first + int64(i)
		var err error
		if i == 0 && !p.HasBase {
			err = c.keyframe(frame)
		} else {
			c.refs.load(&v, seq, ref)
			err = c.frame(frame, l)
		}
		if err != nil {
			return err
		}
		ref = seq
		if i == 0 && !c.decodes() {
			c.oldest = c.enc.Bits()
		}
	}
	return nil
}

// count codes the number of frames, 1 to limit, in unary.
func (c *payloadCodec[M]) count(m *countModel, n, limit int) int {
	i := 1
	for i < limit && c.bit(n > i, uint32(*m.enough(i))) {
		i++
	}
	return i
}

// forecast returns the predicted value of component k of a numeric group and the expected magnitude
// of its residual. It combines [refFrames.offset], [component.fit] and [componentState.expect] in
// one function, to avoid calls in the hot path.
func (c *frameContext) forecast(
	l *modelState, ints []int32, g *group, cp *component, lc *componentState, k int,
) (pred int32, e expectation) {
	p := &c.refs
	lo, hi := &lc.classes[p.lo], &lc.classes[p.hi]
	at := uint(cp.at)
	base := int64(p.ref[at])
	off := int64(0)
	switch a := lo.expert | hi.expert; {
	case g.family == familyDerived:
		off = p.blend(p.derivedOffsets(ints, g, lo, hi, k))
	case a == 0:
	case a == 1:
		s := wrapTo(base-int64(p.h1[at]), cp.wrap) * p.r1 >> 12
		off = p.blend(int64(lo.w[0])*s*int64(lo.expert), int64(hi.w[0])*s*int64(hi.expert))
	case lo.expert == 2 && hi.expert == 2 && cp.wrap == 0:
		h1, h2, hd := int64(p.h1[at]), int64(p.h2[at]), int64(p.hd[at])
		s := (base - h1) * p.r1 >> 12
		x, y := int64(lo.w[1])*s, int64(hi.w[1])*s
		s = (hd - int64(p.hdd[at])) * p.rdd >> 12
		x += int64(lo.w[2]) * s
		y += int64(hi.w[2]) * s
		s = (h1 - h2) * p.r12 >> 12
		x += int64(lo.w[3]) * s
		y += int64(hi.w[3]) * s
		s = (base - hd) * p.rd >> 12
		x += int64(lo.w[4]) * s
		y += int64(hi.w[4]) * s
		s = (h2 - int64(p.h4[at])) * p.r24 >> 12
		x += int64(lo.w[5]) * s
		y += int64(hi.w[5]) * s
		off = p.blend(x, y)
	default:
		off = p.offset(l, ints, g, cp, lc, k)
	}
	return cp.fit(base + off), lc.expect(p, &c.context, off)
}
