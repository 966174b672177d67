package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// codeUpdate codes an update against base, or absolutely if base is nil, and stores it in to. At
// the sender, now is the state of the object, nil for a removal.
func (pc *payloadCodec) codeUpdate(to, base *record, now *objectState) {
	s, o, p := pc.out.state, &pc.object, pc.plan
	known := 0
	if base != nil {
		known = 1
	}
	if pc.Decoding {
		o.now = o.decoded
	}
	if now != nil {
		o.now = now.row
		copy(p.wordsOf(to), now.words)
		to.rests, to.zero = now.rests, now.zero
	}
	if to.gone = pc.Bit(&s.gone[known], to.gone); to.gone {
		clear(to.data)
		to.rests, to.zero = false, false
		return
	}
	if base != nil && !pc.Bit(&s.regenerated, !pc.Decoding && to.object.Generation != base.object.Generation) {
		to.object.Generation = base.object.Generation
		pc.codeDelta(to, base)
	} else {
		to.object.Generation = uint8(pc.Raw(uint64(to.object.Generation), 8))
		clear(to.data[p.packing.Words():])
		if pc.codeAbsolute(to, o.now); pc.Decoding {
			p.packing.Pack(p.wordsOf(to), o.now)
		}
	}
	if pc.Decoding {
		to.rests, to.zero = p.rests(o.now)
	}
}

func (pc *payloadCodec) codeDelta(to, base *record) {
	s, o := pc.out.state, &pc.object
	ctx, was := 0, 0
	if base.rests {
		ctx = 1
	}
	if base.zero {
		ctx, was = ctx|2, 1
	}
	p := pc.plan
	o.to, o.learned, o.missed, o.trends, o.newTrends = to, p.missesOf(base), p.missesOf(to), p.trendsOf(base), p.trendsOf(to)
	copy(o.missed, o.learned)
	if pc.Bit(&s.same[ctx][pc.age(base.seq)], slices.Equal(p.wordsOf(to), p.wordsOf(base))) {
		clear(o.newTrends)
		if pc.Decoding {
			copy(p.wordsOf(to), p.wordsOf(base))
			p.packing.Unpack(o.now, p.wordsOf(to))
		}
		return
	}
	p.packing.Unpack(o.was, p.wordsOf(base))
	clear(o.newTrends)
	if clear(o.misses); pc.Decoding {
		copy(o.now, o.was)
	}
	pc.codeFlags(o, ctx)
	pc.codeTexts(o, ctx)
	zero := base.zero
	if len(p.zeroAtRest) > 0 {
		zero = pc.Bit(&s.zero[was], !pc.Decoding && to.zero)
	}
	o.elapsed = fixed.Clamp(int64(int32(to.tick-base.tick)), 1, 120)
	for _, i := range p.order {
		f, m := &p.fields[i], &s.fields[i]
		cur, old := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
		switch {
		case zero && f.zeroAtRest:
			pc.storeZero(cur)
		case pc.Bit(&m.kept[was], slices.Equal(cur, old)):
		case f.Class == schema.ClassQuat:
			pc.codeQuat(i, o)
		default:
			pc.codeMotion(i, o)
		}
	}
	if pc.Decoding {
		p.packing.Pack(p.wordsOf(to), o.now)
	}
}

func (pc *payloadCodec) codeFlags(o *objectContext, ctx int) {
	s := pc.out.state
	for n, i := range pc.plan.flags {
		f := &pc.plan.fields[i]
		at, v := f.at, o.was[f.at]
		switch {
		case !pc.Bit(&s.flags[n][ctx], o.now[at] != v):
		case int64(f.Hi)-int64(f.Lo) == 1:
			pc.Store(&o.now[at], f.Lo+f.Hi-v)
		default:
			pc.Store(&o.now[at], pc.Uniform(o.now[at], f.Lo, f.Hi))
		}
	}
}

// storeZero sets the components to zero if decoding.
func (pc *payloadCodec) storeZero(row []int32) {
	if pc.Decoding {
		clear(row)
	}
}

func (pc *payloadCodec) codeAbsolute(to *record, row []int32) {
	s, p := pc.out.state, pc.plan
	zero := false
	if len(p.zeroAtRest) > 0 {
		zero = pc.Bit(&s.zero[2], !pc.Decoding && to.zero)
	}
	for i := range p.fields {
		f := &p.fields[i]
		cur := row[f.at : f.at+f.N]
		if zero && f.zeroAtRest {
			pc.storeZero(cur)
			continue
		}
		if f.Class == schema.ClassBytes {
			pc.Bytes(cur, f.Lo, f.Hi)
			continue
		}
		if i == p.anchor && pc.hasViewer && pc.Bit(&s.near, !pc.Decoding && pc.shorter(f, cur)) {
			for k := range cur {
				d := pc.rare(rarePosition, int64(cur[k])-pc.viewerPosition[k])
				pc.Store(&cur[k], pc.Check(pc.viewerPosition[k]+d, f.Lo, f.Hi))
			}
			continue
		}
		for k := range cur {
			lo, hi := f.bounds(k)
			pc.Store(&cur[k], pc.Uniform(cur[k], lo, hi))
		}
	}
}

// shorter reports whether a position takes fewer bits relative to the viewer. It estimates 3 bits
// for the length and the sign of a difference.
func (pc *payloadCodec) shorter(f *field, cur []int32) bool {
	need := 0
	for k := range cur {
		need += bits.Len64(uint64(fixed.Abs(int64(cur[k])-pc.viewerPosition[k]))) + 3
	}
	return need < len(cur)*bits.Len32(uint32(f.Hi-f.Lo))
}

func (pc *payloadCodec) codeTexts(o *objectContext, ctx int) {
	for n, i := range pc.plan.strings {
		f, t := &pc.plan.fields[i], &pc.out.state.texts[n]
		cur, old := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
		if pc.Bit(&t.changed[ctx], !slices.Equal(cur, old)) {
			pc.codeText(f, t, cur, old)
		}
	}
}

// codeText codes a byte string: its length, and the bits of its bytes that differ from old.
func (pc *payloadCodec) codeText(f *field, t *textModel, cur, old []int32) {
	n := old[0]
	if pc.Bit(&t.length, cur[0] != n) {
		n = pc.Uniform(cur[0], f.Lo, f.Hi)
	}
	pc.StoreLength(cur, n)
	differed := 0
	for i := range int(n) {
		var b byte
		b, differed = pc.codeByte(&t.bytes, differed, rangecoder.Byte(cur, i), rangecoder.Byte(old, i))
		pc.StoreByte(cur, i, b)
	}
}

// codeByte codes the byte is, which probably equals was. differs is 1 if it does not, and 0
// otherwise. differed is the value of differs for the previous byte.
func (pc *payloadCodec) codeByte(m *byteModel, differed int, is, was byte) (b byte, differs int) {
	if !pc.Bit(&m.differs[differed], is != was) {
		return was, 0
	}
	for i := range 8 {
		if pc.Bit(&m.flip[i], (is^was)>>i&1 != 0) {
			b |= 1 << i
		}
	}
	return was ^ b, 1
}
