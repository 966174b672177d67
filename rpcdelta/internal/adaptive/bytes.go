package adaptive

import (
	"math/bits"
	"slices"
)

// blobModel holds the chances of a byte string.
type bytesModel struct {
	unchanged    [4]uint16  // a byte stays, by whether the one before it and it changed last
	bitUnchanged [16]uint16 // a bit of a changed byte stays, by place and whether a higher one changed
}

// sameLength is the chance that the length stays, once the string changed.
const sameLengthProb = 57000

func (b *bytesModel) reset() {
	b.unchanged = [4]uint16{58000, 36000, 30000, 16000}
	for i := range b.bitUnchanged {
		b.bitUnchanged[i] = 36000
	}
}

// context of a byte: whether its neighbor changed now, and it itself before.
func (b *bytesModel) context(neighbor bool, i int, base, prev []byte) *uint16 {
	k := 0
	if neighbor {
		k = 1
	}
	if i >= len(prev) || prev[i] != base[i] {
		k |= 2
	}
	return &b.unchanged[k]
}

func (b *bytesModel) learn(x, base, prev []byte) {
	neighbor := false
	for i := range min(len(x), len(base)) {
		v := x[i] ^ base[i]
		adaptProb(b.context(neighbor, i, base, prev), v == 0)
		neighbor = v != 0
		if !neighbor {
			continue
		}
		high := 0
		for j := 7; j >= 0; j-- {
			set := v>>j&1 == 1
			adaptProb(&b.bitUnchanged[j<<1|high], !set)
			if set {
				high = 1
			}
		}
	}
}

// bytes codes a byte string against the reference's.
func (c *payloadCodec[M]) bytes(row *Row, g *group, b *bytesModel) (err error) {
	base, prev := c.refs.refBytes[g.blob], c.refs.prevBytes[g.blob]
	x, n := row.Bytes[g.blob], len(base)
	if g.minBytes < g.maxBytes && c.bit(len(x) != n, sameLengthProb) {
		if n, err = c.length(g, len(x)); err != nil {
			return err
		}
	}
	if c.decodes() {
		x = slices.Grow(x[:0], n)[:n]
		row.Bytes[g.blob] = x
	}
	neighbor := false
	for i := range min(n, len(base)) {
		v := x[i] ^ base[i]
		neighbor = c.bit(v != 0, uint32(*b.context(neighbor, i, base, prev)))
		if neighbor {
			v = c.changedByte(v, &b.bitUnchanged)
		} else {
			v = 0
		}
		if c.decodes() {
			x[i] = v ^ base[i]
		}
	}
	for i := len(base); i < n; i++ {
		if v := byte(c.raw(uint64(x[i]), 8)); c.decodes() {
			x[i] = v
		}
	}
	if c.measures() {
		c.meter.Contents(g.field, c.spent())
	}
	return nil
}

// flips codes which bits of a byte differ from the reference's.
func (c *payloadCodec[M]) changedByte(v byte, chances *[16]uint16) (out byte) {
	high := 0
	for j := 7; j >= 0; j-- {
		if c.bit(v>>j&1 == 1, uint32(chances[j<<1|high])) {
			out |= 1 << j
			high = 1
		}
	}
	return out
}

// length codes the length of a byte string.
func (c *payloadCodec[M]) length(g *group, n int) (int, error) {
	n = g.minBytes + int(c.raw(uint64(n-g.minBytes), uint(bits.Len(uint(g.maxBytes-g.minBytes)))))
	if n > g.maxBytes {
		return 0, ErrMalformed
	}
	return n, nil
}
