package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

// blobModel holds the chances of a byte string.
type blobModel struct {
	stay [4]uint16  // a byte stays, by whether the one before it and it changed last
	bit  [16]uint16 // a bit of a changed byte stays, by place and whether a higher one changed
}

// sameLength is the chance that the length stays, once the string changed.
const sameLength = 57000

func (b *blobModel) reset() {
	b.stay = [4]uint16{58000, 36000, 30000, 16000}
	for i := range b.bit {
		b.bit[i] = 36000
	}
}

// context of a byte: whether its neighbor changed now, and it itself before.
func (b *blobModel) context(neighbor bool, i int, base, prev []byte) *uint16 {
	k := 0
	if neighbor {
		k = 1
	}
	if i >= len(prev) || prev[i] != base[i] {
		k |= 2
	}
	return &b.stay[k]
}

func (b *blobModel) learn(x, base, prev []byte) {
	neighbor := false
	for i := range min(len(x), len(base)) {
		v := x[i] ^ base[i]
		adapt(b.context(neighbor, i, base, prev), v == 0)
		neighbor = v != 0
		if !neighbor {
			continue
		}
		high := 0
		for j := 7; j >= 0; j-- {
			set := v>>j&1 == 1
			adapt(&b.bit[j<<1|high], !set)
			if set {
				high = 1
			}
		}
	}
}

func (b *blobModel) encode(e *entropy.Encoder, g *group, x, base, prev []byte) {
	if g.minBytes < g.maxBytes {
		e.Bit(len(x) != len(base), sameLength)
		if len(x) != len(base) {
			encodeLength(e, g, len(x))
		}
	}
	n := min(len(x), len(base))
	neighbor := false
	for i, c := range x[:n] {
		v := c ^ base[i]
		e.Bit(v != 0, uint32(*b.context(neighbor, i, base, prev)))
		neighbor = v != 0
		if !neighbor {
			continue
		}
		high := 0
		for j := 7; j >= 0; j-- {
			set := v>>j&1 == 1
			e.Bit(set, uint32(b.bit[j<<1|high]))
			if set {
				high = 1
			}
		}
	}
	for _, c := range x[n:] {
		e.Raw(uint64(c), 8)
	}
}

// decode appends the string to dst.
func (b *blobModel) decode(d *entropy.Decoder, g *group, dst, base, prev []byte) ([]byte, error) {
	n := len(base)
	if g.minBytes < g.maxBytes && d.Bit(sameLength) {
		var err error
		if n, err = decodeLength(d, g); err != nil {
			return dst, err
		}
	}
	neighbor := false
	for i := range min(n, len(base)) {
		neighbor = d.Bit(uint32(*b.context(neighbor, i, base, prev)))
		v := byte(0)
		if neighbor {
			high := 0
			for j := 7; j >= 0; j-- {
				if d.Bit(uint32(b.bit[j<<1|high])) {
					v |= 1 << j
					high = 1
				}
			}
		}
		dst = append(dst, base[i]^v)
	}
	for range n - len(base) {
		dst = append(dst, byte(d.Raw(8)))
	}
	return dst, nil
}

func encodeLength(e *entropy.Encoder, g *group, n int) {
	e.Raw(uint64(n-g.minBytes), uint(bits.Len(uint(g.maxBytes-g.minBytes))))
}

func decodeLength(d *entropy.Decoder, g *group) (int, error) {
	n := g.minBytes + int(d.Raw(uint(bits.Len(uint(g.maxBytes-g.minBytes)))))
	if n > g.maxBytes {
		return 0, ErrMalformed
	}
	return n, nil
}
