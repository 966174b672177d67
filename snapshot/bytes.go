package snapshot

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// putBytes sets the components c to the byte string b.
func putBytes(c []int32, b []byte) {
	clear(c)
	c[0] = int32(len(b))
	for i, v := range b {
		rangecoder.SetByte(c, i, v)
	}
}

// appendBytes appends the byte string of the components c.
func appendBytes(dst []byte, c []int32) []byte {
	for i := range int(c[0]) {
		dst = append(dst, rangecoder.Byte(c, i))
	}
	return dst
}

// codeStrings codes each byte string of an object in the baseline: kept or replaced.
func (pc *payloadCodec) codeStrings(row []int32, changed bool) {
	ctx := 0
	if changed {
		ctx = 1
	}
	for n, i := range pc.schema.strings {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		c, base, m := row[at:at+f.N], pc.object.base[at:at+f.N], &pc.state.strings[n]
		if pc.Bit(&m.replaced[ctx], !slices.Equal(c, base)) {
			pc.codeBytes(f, m, c, base)
		}
	}
}

// codeBytes codes a byte string into c. Bytes that equal those of base take little space.
func (pc *payloadCodec) codeBytes(f *Field, m *bytesModel, c, base []int32) {
	n := base[0]
	if pc.Bit(&m.length, c[0] != n) {
		n = pc.Uniform(c[0], f.Lo, f.Hi)
	}
	pc.StoreLength(c, n)
	last := 1
	for i := range int(n) {
		b := rangecoder.Byte(c, i)
		if i < int(base[0]) {
			old := rangecoder.Byte(base, i)
			if pc.Bit(&m.kept[last], b == old) {
				last = 1
				pc.StoreByte(c, i, old)
				continue
			}
			last = 0
		}
		pc.StoreByte(c, i, byte(pc.Raw(uint64(b), 8)))
	}
}
