package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// text is what was learned of a Bytes field.
type text struct {
	changed [4]rangecoder.Prob
	length  rangecoder.Prob
	byte    [2]rangecoder.Prob // it differs, by whether the one before did
	flip    [8]rangecoder.Prob
}

func (t *text) init() {
	rangecoder.Fill(t.changed[:], 4000, 4)
	t.length = rangecoder.Prob{P: rangecoder.Half}
	rangecoder.Fill(t.byte[:], rangecoder.Half, 0)
	rangecoder.Fill(t.flip[:], rangecoder.Half, 0)
}

// codeTexts codes the byte strings of an object against its baseline.
func (w *walk) codeTexts(to, base *record, ctx int) {
	for n, i := range w.plan.strings {
		f, t := &w.plan.fields[i], &w.out.state.texts[n]
		cur, old := to.row()[f.at:f.at+f.N], base.row()[f.at:f.at+f.N]
		if w.Bit(&t.changed[ctx], !slices.Equal(cur, old)) {
			w.codeText(f, t, cur, old)
		}
	}
}

// codeText codes a byte string: its length, and which bits of its bytes are others than in old.
func (w *walk) codeText(f *field, t *text, cur, old []int32) {
	n := cur[0]
	if w.Decoding {
		clear(cur)
		n = old[0]
	}
	if w.Bit(&t.length, n != old[0]) {
		n = w.plain(n, f.Lo, f.Hi)
	}
	cur[0] = n
	before := 0
	for i := range int(n) {
		was := byteOf(old, i)
		flips := byteOf(cur, i) ^ was
		differs := w.Bit(&t.byte[before], flips != 0)
		if before = 0; differs {
			before = 1
			flips = w.flips(&t.flip, flips)
		} else {
			flips = 0
		}
		if w.Decoding {
			cur[1+i/4] |= int32(uint32(was^flips) << (8 * (i % 4)))
		}
	}
}

// wholeText codes a byte string that is told from nothing.
func (w *walk) wholeText(f *field, cur []int32) {
	cur[0] = w.plain(cur[0], f.Lo, f.Hi)
	if w.Decoding {
		clear(cur[1:])
	}
	for i := range int(cur[0]) {
		v := w.Raw(uint64(byteOf(cur, i)), 8)
		if w.Decoding {
			cur[1+i/4] |= int32(uint32(v) << (8 * (i % 4)))
		}
	}
}

// flips codes which bits of a byte changed.
func (w *walk) flips(m *[8]rangecoder.Prob, v byte) (flips byte) {
	for b := range 8 {
		if w.Bit(&m[b], v>>b&1 != 0) {
			flips |= 1 << b
		}
	}
	return flips
}

// byteOf is a byte of a Bytes field's components.
func byteOf(c []int32, i int) byte { return byte(uint32(c[1+i/4]) >> (8 * (i % 4))) }
