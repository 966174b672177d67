package perplayerstate

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// codeUpdate codes an update into to: against base, or absolutely if that is nil. row is the state
// of the object at the sender.
func (pc *payloadCodec) codeUpdate(to, base *record, row []int32) {
	s := pc.out.state
	known := 0
	if base != nil {
		known = 1
	}
	if !pc.Decoding && !to.gone {
		copy(to.row(), row)
	}
	if to.gone = pc.Bit(&s.gone[known], to.gone); to.gone {
		clear(to.row())
		return
	}
	if base != nil && !pc.Bit(&s.regenerated, !pc.Decoding && to.object.Generation != base.object.Generation) {
		to.object.Generation = base.object.Generation
		pc.codeDelta(to, base)
	} else {
		to.object.Generation = uint8(pc.Raw(uint64(to.object.Generation), 8))
		pc.codeAbsolute(to.row())
	}
	to.zero = pc.plan.zero(to.row())
	to.rests = pc.plan.rests(to.row(), to.zero)
}

func (pc *payloadCodec) codeDelta(to, base *record) {
	s := pc.out.state
	o := &pc.object
	o.to, o.base, o.now, o.was, o.learned = to, base, to.row(), base.row(), base.learned()
	if pc.Decoding {
		copy(o.now, o.was)
	}
	ctx, was := 0, 0
	if base.rests {
		ctx = 1
	}
	if base.zero {
		ctx, was = ctx|2, 1
	}
	copy(to.learned()[pc.plan.trends:], o.learned[pc.plan.trends:])
	if pc.Bit(&s.same[ctx][pc.age(base.seq)], slices.Equal(o.now, o.was)) {
		return
	}
	pc.codeFlags(to, base, ctx)
	pc.codeTexts(to, base, ctx)
	zero := base.zero
	if len(pc.plan.zeroAtRest) > 0 {
		zero = pc.Bit(&s.zero[was], pc.plan.zero(o.now))
	}
	o.elapsed = fixed.Clamp(pc.out.tick-base.tick, 1, 120)
	o.here, o.near = pc.neighbors.open(pc.position(o.was))
	for _, i := range pc.plan.order {
		f, m := &pc.plan.fields[i], &s.fields[i]
		cur, old := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
		if zero && f.zeroAtRest {
			clear(cur)
			continue
		}
		if pc.Bit(&m.kept[was], slices.Equal(cur, old)) {
			continue
		}
		if f.Class == schema.ClassQuat {
			pc.codeQuat(i, o, cur, old)
		} else {
			pc.codeMotion(i, o, cur, old)
		}
	}
	pc.neighbors.n++
}

func (pc *payloadCodec) codeFlags(to, base *record, ctx int) {
	s := pc.out.state
	for n, i := range pc.plan.flags {
		f := &pc.plan.fields[i]
		at, v := f.at, base.row()[f.at]
		switch {
		case !pc.Bit(&s.flags[n][ctx], to.row()[at] != v):
		case int64(f.Hi)-int64(f.Lo) == 1:
			to.row()[at] = f.Lo + f.Hi - v
		default:
			to.row()[at] = pc.Uniform(to.row()[at], f.Lo, f.Hi)
		}
	}
}

func (pc *payloadCodec) codeAbsolute(row []int32) {
	s, p := pc.out.state, pc.plan
	zero := false
	if len(p.zeroAtRest) > 0 {
		zero = pc.Bit(&s.zero[2], p.zero(row))
	}
	for i := range p.fields {
		f := &p.fields[i]
		cur := row[f.at : f.at+f.N]
		if zero && f.zeroAtRest {
			clear(cur)
			continue
		}
		if f.Class == schema.ClassBytes {
			pc.Bytes(cur, f.Lo, f.Hi)
			continue
		}
		if i == p.anchor && pc.hasViewer && pc.Bit(&s.near, !pc.Decoding && pc.shorter(f, cur)) {
			for k := range cur {
				d := pc.rare(rarePosition, int64(cur[k])-pc.viewerPosition[k])
				cur[k] = pc.Check(pc.viewerPosition[k]+d, f.Lo, f.Hi)
			}
			continue
		}
		for k := range cur {
			lo, hi := f.bounds(k)
			cur[k] = pc.Uniform(cur[k], lo, hi)
		}
	}
}

// shorter reports whether a position takes fewer bits relative to the viewer, with 3 for the length
// and the sign.
func (pc *payloadCodec) shorter(f *field, cur []int32) bool {
	need := 0
	for k := range cur {
		need += bits.Len64(uint64(fixed.Abs(int64(cur[k])-pc.viewerPosition[k]))) + 3
	}
	return need < len(cur)*bits.Len32(uint32(f.Hi-f.Lo))
}

func (pc *payloadCodec) codeTexts(to, base *record, ctx int) {
	for n, i := range pc.plan.strings {
		f, t := &pc.plan.fields[i], &pc.out.state.texts[n]
		cur, old := to.row()[f.at:f.at+f.N], base.row()[f.at:f.at+f.N]
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

// codeByte codes a byte that probably equals another one, and reports whether it differs as 1 or 0.
// differed is that result for the previous byte.
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
