package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// bytesModel is what was learned of a Bytes field.
type bytesModel struct {
	replaced [2]rangecoder.Prob // by whether the object's numbers changed
	length   rangecoder.Prob    // changed within what is replaced
	kept     [2]rangecoder.Prob // a byte is that of the baseline, by whether the one before it was
}

func (m *bytesModel) init() {
	rangecoder.Fill(m.replaced[:], rangecoder.Half, 0)
	rangecoder.Fill(m.kept[:], rangecoder.Half, 0)
	m.length = rangecoder.Prob{P: rangecoder.Half}
}

// padded says whether what is beyond the length of a byte string is zero.
func padded(c []int32) bool {
	n := int(c[0])
	words := c[1:]
	if n%4 != 0 && uint32(words[n/4])>>(8*(n%4)) != 0 {
		return false
	}
	for _, v := range words[(n+3)/4:] {
		if v != 0 {
			return false
		}
	}
	return true
}

func getByte(c []int32, i int) byte { return byte(uint32(c[1+i/4]) >> (8 * (i % 4))) }

func setByte(c []int32, i int, b byte) {
	shift := 8 * (i % 4)
	c[1+i/4] = int32(uint32(c[1+i/4])&^(0xff<<shift) | uint32(b)<<shift)
}

// storeByte is setByte for an object that is decoded, see [walk.store].
func (w *walk) storeByte(c []int32, i int, b byte) {
	if w.Decoding {
		setByte(c, i, b)
	}
}

// putBytes makes c hold b.
func putBytes(c []int32, b []byte) {
	clear(c)
	c[0] = int32(len(b))
	for i, v := range b {
		setByte(c, i, v)
	}
}

// appendBytes appends what c holds.
func appendBytes(dst []byte, c []int32) []byte {
	for i := range int(c[0]) {
		dst = append(dst, getByte(c, i))
	}
	return dst
}

// codeStrings codes each byte string of an object of the baseline: kept or replaced.
func (w *walk) codeStrings(row []int32, changed bool) {
	ctx := 0
	if changed {
		ctx = 1
	}
	for n, i := range w.schema.strings {
		f, at := &w.schema.fields[i], w.schema.at[i]
		c, base, m := row[at:at+f.N], w.object.base[at:at+f.N], &w.state.strings[n]
		if w.Bit(&m.replaced[ctx], !slices.Equal(c, base)) {
			w.codeBytes(f, m, c, base)
		}
	}
}

// codeBytes codes a byte string into c: what is as in base, and each other byte as it is.
func (w *walk) codeBytes(f *Field, m *bytesModel, c, base []int32) {
	n := base[0]
	if w.Bit(&m.length, c[0] != n) {
		n = w.bounded(int64(f.Lo)+int64(w.Raw(uint64(c[0]-f.Lo), f.width())), f.Lo, f.Hi)
	}
	if w.Decoding {
		clear(c)
		c[0] = n
	}
	last := 1
	for i := range int(n) {
		b := getByte(c, i)
		if i < int(base[0]) {
			old := getByte(base, i)
			if w.Bit(&m.kept[last], b == old) {
				last = 1
				w.storeByte(c, i, old)
				continue
			}
			last = 0
		}
		w.storeByte(c, i, byte(w.Raw(uint64(b), 8)))
	}
}

// codeWholeBytes codes a byte string of an object that the baseline has not.
func (w *walk) codeWholeBytes(f *Field, c []int32) {
	n := w.bounded(int64(f.Lo)+int64(w.Raw(uint64(c[0]-f.Lo), f.width())), f.Lo, f.Hi)
	if w.Decoding {
		clear(c)
		c[0] = n
	}
	for i := range int(n) {
		w.storeByte(c, i, byte(w.Raw(uint64(getByte(c, i)), 8)))
	}
}
