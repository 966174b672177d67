package snapshot

import (
	"slices"
)

func getByte(c []int32, i int) byte { return byte(uint32(c[1+i/4]) >> (8 * (i % 4))) }

func setByte(c []int32, i int, b byte) {
	shift := 8 * (i % 4)
	c[1+i/4] = int32(uint32(c[1+i/4])&^(0xff<<shift) | uint32(b)<<shift)
}

// storeByte is setByte for decoded objects, see [payloadCodec.store].
func (pc *payloadCodec) storeByte(c []int32, i int, b byte) {
	if pc.Decoding {
		setByte(c, i, b)
	}
}

// putBytes sets the components c to the byte string b.
func putBytes(c []int32, b []byte) {
	clear(c)
	c[0] = int32(len(b))
	for i, v := range b {
		setByte(c, i, v)
	}
}

// appendBytes appends the byte string of the components c.
func appendBytes(dst []byte, c []int32) []byte {
	for i := range int(c[0]) {
		dst = append(dst, getByte(c, i))
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
		n = pc.checkBounds(int64(f.Lo)+int64(pc.Raw(uint64(c[0]-f.Lo), f.width())), f.Lo, f.Hi)
	}
	if pc.Decoding {
		clear(c)
		c[0] = n
	}
	last := 1
	for i := range int(n) {
		b := getByte(c, i)
		if i < int(base[0]) {
			old := getByte(base, i)
			if pc.Bit(&m.kept[last], b == old) {
				last = 1
				pc.storeByte(c, i, old)
				continue
			}
			last = 0
		}
		pc.storeByte(c, i, byte(pc.Raw(uint64(b), 8)))
	}
}

// codeAbsoluteBytes codes a byte string of an object that is not in the baseline.
func (pc *payloadCodec) codeAbsoluteBytes(f *Field, c []int32) {
	n := pc.checkBounds(int64(f.Lo)+int64(pc.Raw(uint64(c[0]-f.Lo), f.width())), f.Lo, f.Hi)
	if pc.Decoding {
		clear(c)
		c[0] = n
	}
	for i := range int(n) {
		pc.storeByte(c, i, byte(pc.Raw(uint64(getByte(c, i)), 8)))
	}
}
