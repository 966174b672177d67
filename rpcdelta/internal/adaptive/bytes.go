package adaptive

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
)

// bytesModel holds the probabilities of a byte string.
type bytesModel struct {
	// unchanged is the probability that a byte does not change, by whether the byte before it
	// changes and whether this byte changed in the reference.
	unchanged [4]uint16
	// bitUnchanged is the probability that a bit of a changed byte does not change, by position and
	// whether a higher bit changes.
	bitUnchanged [16]uint16
}

// sameLengthProb is the probability that a changed byte string keeps its length, of 65536.
const sameLengthProb = 57000

func (b *bytesModel) reset() {
	b.unchanged = [4]uint16{58000, 36000, 30000, 16000}
	for i := range b.bitUnchanged {
		b.bitUnchanged[i] = 36000
	}
}

// context returns the probability for byte i. neighbor reports whether the byte before it changes.
func (b *bytesModel) context(neighbor bool, i int, ref, prev []byte) *uint16 {
	k := 0
	if neighbor {
		k = 1
	}
	if i >= len(prev) || prev[i] != ref[i] {
		k |= 2
	}
	return &b.unchanged[k]
}

// learn learns the string x, given the strings of the reference and of the frame before it.
func (b *bytesModel) learn(x, ref, prev []byte) {
	neighbor := false
	for i := range min(len(x), len(ref)) {
		v := x[i] ^ ref[i]
		adaptProb(b.context(neighbor, i, ref, prev), v == 0)
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

// bytes codes a changed byte string.
func (c *payloadCodec[M]) bytes(row *schema.Frame, g *group, b *bytesModel) (err error) {
	ref, prev := c.refs.refBytes[g.blob], c.refs.prevBytes[g.blob]
	x, n := row.Bytes[g.blob], len(ref)
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

// length codes the length n of a byte string.
func (c *payloadCodec[M]) length(g *group, n int) (int, error) {
	n = g.minBytes + int(c.raw(uint64(n-g.minBytes), uint(bits.Len(uint(g.maxBytes-g.minBytes)))))
	if n > g.maxBytes {
		return 0, ErrMalformed
	}
	return n, nil
}
