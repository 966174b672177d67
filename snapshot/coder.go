package snapshot

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

// chance is how likely a decision is true, of 65,536, and how often it was met.
type chance struct {
	p uint16
	n uint16
}

// slowest is after how many decisions a chance no longer adapts slower.
const slowest = 250

// rates are what a chance moves by, of 65,536.
var rates = func() (r [slowest + 1]int32) {
	for i := range r {
		r[i] = int32(2 * 65536 / (2*i + 3))
	}
	return r
}()

func (c *chance) learn(bit bool) {
	p, target := int32(c.p), int32(0)
	if bit {
		target = 65535
	}
	p += int32(int64(target-p) * int64(rates[c.n]) >> 16)
	c.p = uint16(min(max(p, 24), 65536-24))
	if c.n < slowest {
		c.n++
	}
}

// coder is either half of the range coder, so that one walk through a snapshot serves both ends.
type coder struct {
	enc      entropy.Encoder
	dec      entropy.Decoder
	decoding bool
}

// bit codes b, or decodes and gives it.
func (c *coder) bit(p *chance, b bool) bool {
	p0 := 65536 - uint32(p.p)
	if c.decoding {
		b = c.dec.Narrow(p0)
		c.dec.Settle()
	} else {
		c.enc.Narrow(b, p0)
		c.enc.Settle()
	}
	p.learn(b)
	return b
}

func (c *coder) raw(v uint64, n uint) uint64 {
	if c.decoding {
		return c.dec.Raw(n)
	}
	c.enc.Raw(v, n)
	return v
}

// Magnitudes are told apart by their length in bits, below lengths of them, under one of levels of scale.
const (
	lengths = 33
	levels  = 40
	signs   = 9 * 3 * 3
)

// numbers is what was learned of one kind of number.
type numbers struct {
	length   [levels][lengths]chance
	sign     [signs]chance
	mantissa [lengths][8]chance
}

// middle is the length that the decisions of a level begin at.
func middle(level int) int { return (level + 1) / 3 }

// init starts from magnitudes x of which half are below the level's m, and m/(m+x) above x.
func (m *numbers) init() {
	for lv := range m.length {
		// Three levels an octave, in Q8.
		mid := []int64{72, 90, 114}[lv%3] << (lv / 3) * 2
		longer := func(k int) int64 { return mid * 65536 / (mid + 256<<k - 128) }
		for k := range m.length[lv] {
			p := longer(k)
			switch at := middle(lv); {
			case k > at:
				p = p * 65536 / max(longer(k-1), 1)
			case k < at:
				p = (p - longer(k+1)) * 65536 / (65536 - longer(k+1))
			}
			m.length[lv][k] = chance{uint16(clamp(p, 200, 65336)), 10}
		}
	}
	fill(m.sign[:])
	for i := range m.mantissa {
		fill(m.mantissa[i][:])
	}
}

func fill(c []chance) {
	for i := range c {
		c[i] = chance{32768, 0}
	}
}

// number codes v, of less than 32 bits, under a level of scale and a context of its sign.
func (c *coder) number(m *numbers, level int, sign int, v int64) int64 {
	size := bits.Len64(uint64(abs(v)))
	n := c.length(&m.length[level], middle(level), size)
	if n == 0 {
		return 0
	}
	negative := c.bit(&m.sign[sign], v < 0)
	mag := uint64(1)
	if n > 1 {
		mag = c.mantissa(&m.mantissa[n], uint(n-1), uint64(abs(v)))
	}
	if negative {
		return -int64(mag)
	}
	return int64(mag)
}

// length codes how many bits a magnitude has: whether more than at, and from there on up or down whether it is the next.
func (c *coder) length(row *[lengths]chance, at, size int) int {
	n := at
	if c.bit(&row[n], size > n) {
		for n++; n < lengths-1 && c.bit(&row[n], size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !c.bit(&row[n-1], size > n-1); n-- {
	}
	return n
}

// mantissa codes the low n bits of v, whose bit n is set: the first three adapt.
func (c *coder) mantissa(m *[8]chance, n uint, v uint64) uint64 {
	node := uint64(1)
	for n > 0 && node < 8 {
		n--
		node <<= 1
		if c.bit(&m[node>>1], v>>n&1 != 0) {
			node |= 1
		}
	}
	if n > 0 {
		node = node<<n | c.raw(v&(1<<n-1), n)
	}
	return node
}
