package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

// chance is how likely a decision is true, of 65,536, and how often it was met.
type chance struct{ p, n uint16 }

// slowest is after how many decisions a chance no longer adapts slower.
const slowest = 120

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

func fill(c []chance, p, n uint16) {
	for i := range c {
		c[i] = chance{p, n}
	}
}

// coder is either half of the range coder, so that one walk through a packet serves both ends.
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

// Magnitudes are told apart by their length in bits, under one of levels of scale: half a bit each.
const (
	levels  = 40
	longest = 32 // bits of a magnitude
	signs   = 9
	// lengths are told apart by how far they are from the one in the middle of their level, in so many steps, of which
	// below are before it.
	lengths = 16
	below   = 6
	// leads are the lengths whose leading bits are told apart.
	leads = 18
)

// lead is what was learned of the three bits after the first one of a magnitude.
type lead [leads][8]chance

// numbers is what was learned of one kind of number.
type numbers struct {
	length [levels][lengths]chance
	sign   [signs]chance
	lead   lead
}

// few is what was learned of numbers that are rare: of few levels, and one for those of any level.
type few struct {
	length [fewLevels + 1][lengths]chance
	sign   [signs]chance
	lead   lead
}

const fewLevels = 9

// middle is the length about which a level's lie.
func middle(level int) int { return max(0, level/2-1) }

// init starts from magnitudes x of which half are below the level's m, and m/(m+x) above x.
func (m *numbers) init() {
	for lv := range m.length {
		start(&m.length[lv], lv)
	}
	m.lead.init()
	fill(m.sign[:], 32768, 0)
}

func (m *few) init() {
	for lv := range m.length {
		start(&m.length[lv], lv)
	}
	start(&m.length[fewLevels], levels/2)
	m.lead.init()
	fill(m.sign[:], 32768, 0)
}

func (l *lead) init() {
	for i := range l {
		fill(l[i][:], 32768, 0)
	}
}

// start sets what a level's lengths start from.
func start(row *[lengths]chance, level int) {
	mid, at := int64(90+37*(level&1))<<(level/2), middle(level) // mid is in Q8
	above := func(n int) int64 { return mid << 16 / (mid + 256<<n - 128) }
	for i := range row {
		n := at + i - below
		if n < 0 || n >= longest {
			row[i] = chance{32768, 10}
			continue
		}
		p := above(n)
		switch {
		case n > at:
			p = p << 16 / above(n-1)
		case n < at:
			p = (p - above(n+1)) << 16 / (65536 - above(n+1))
		}
		row[i] = chance{uint16(clamp(p, 200, 65336)), 10}
	}
}

// level is that of a scale, a logarithm.
func level(scale int64) int { return int(clamp((scale+256)>>7, 0, levels-1)) }

// number codes v, of at most 32 bits, under a level of scale and a context of its sign.
func (c *coder) number(m *numbers, level, sign int, v int64) int64 {
	return c.magnitude(&m.length[level], middle(level), &m.sign[sign], &m.lead, v)
}

// rare codes v as number does.
func (c *coder) rare(m *few, level, sign int, v int64) int64 {
	return c.magnitude(&m.length[min(level, fewLevels)], middle(level), &m.sign[sign], &m.lead, v)
}

// magnitude codes v: whether its length is above that in the middle, and from there step by step up, or down; then its
// sign and the bits after the first.
func (c *coder) magnitude(row *[lengths]chance, mid int, sign *chance, l *lead, v int64) int64 {
	size, n := bits.Len64(uint64(abs(v))), mid
	if c.bit(&row[below], size > n) {
		n++
		for n < longest && c.bit(&row[min(n-mid+below, lengths-1)], size > n) {
			n++
		}
	} else {
		for n > 0 && !c.bit(&row[max(n-1-mid+below, 0)], size >= n) {
			n--
		}
	}
	if n == 0 {
		return 0
	}
	negative := c.bit(sign, v < 0)
	mag := uint64(1)
	if n > 1 {
		mag = c.tail(&l[min(n, leads-1)], uint(n-1), uint64(abs(v)))
	}
	if negative {
		return -int64(mag)
	}
	return int64(mag)
}

// tail codes the low n bits of v, whose bit n is set: the first three adapt.
func (c *coder) tail(m *[8]chance, n uint, v uint64) uint64 {
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
