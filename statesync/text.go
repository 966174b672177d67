package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// codeTexts codes the byte strings of an object against its baseline.
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
	n := cur[0]
	if pc.Decoding {
		clear(cur)
		n = old[0]
	}
	if pc.Bit(&t.length, n != old[0]) {
		n = pc.codeUniform(n, f.Lo, f.Hi)
	}
	cur[0] = n
	before := 0
	for i := range int(n) {
		was := byteOf(old, i)
		flips := byteOf(cur, i) ^ was
		differs := pc.Bit(&t.byte[before], flips != 0)
		if before = 0; differs {
			before = 1
			flips = pc.flips(&t.flip, flips)
		} else {
			flips = 0
		}
		if pc.Decoding {
			cur[1+i/4] |= int32(uint32(was^flips) << (8 * (i % 4)))
		}
	}
}

// codeAbsoluteText codes a byte string without a baseline.
func (pc *payloadCodec) codeAbsoluteText(f *field, cur []int32) {
	cur[0] = pc.codeUniform(cur[0], f.Lo, f.Hi)
	if pc.Decoding {
		clear(cur[1:])
	}
	for i := range int(cur[0]) {
		v := pc.Raw(uint64(byteOf(cur, i)), 8)
		if pc.Decoding {
			cur[1+i/4] |= int32(uint32(v) << (8 * (i % 4)))
		}
	}
}

// flips codes which bits of a byte changed.
func (pc *payloadCodec) flips(m *[8]rangecoder.Prob, v byte) (flips byte) {
	for b := range 8 {
		if pc.Bit(&m[b], v>>b&1 != 0) {
			flips |= 1 << b
		}
	}
	return flips
}

// byteOf returns a byte of the components of a byte string.
func byteOf(c []int32, i int) byte { return byte(uint32(c[1+i/4]) >> (8 * (i % 4))) }
