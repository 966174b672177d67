// Package rangecoder implements a range coder with 16-bit frequencies for small payloads. A payload
// has no header. Zeros at its end are implied, so a likely payload has 0 bytes. [Coder] encodes or
// decodes, so that one function describes both directions. It also adapts the probabilities of
// decisions ([Prob]) and numbers ([IntModel]).
//
// All arithmetic is in integers: the same bits on every platform. Nothing allocates, except the
// growth of the encoder's buffer. Nothing is safe for concurrent use.
package rangecoder

import "math/bits"

// Coder encodes or decodes, so that one function serves both directions. Reset the half that is
// used. While encoding, a method codes its argument and returns it; while decoding, it ignores the
// argument and returns the decoded value.
type Coder struct {
	Enc      Encoder
	Dec      Decoder
	Decoding bool
	Bad      bool // [Coder.Check] found a component out of bounds
	maxCount uint16
}

// NewCoder returns a coder whose probabilities adapt at a constant rate after maxCount decisions,
// at most [MaxCount].
func NewCoder(maxCount uint16, decoding bool) Coder {
	return Coder{maxCount: maxCount, Decoding: decoding}
}

// Bit codes a decision with probability p, and adapts p.
func (c *Coder) Bit(p *Prob, b bool) bool {
	p0 := Scale - uint32(p.P)
	if c.Decoding {
		b = c.Dec.BitNoRenorm(p0)
		c.Dec.Renorm()
	} else {
		c.Enc.BitNoRenorm(b, p0)
		c.Enc.Renorm()
	}
	p.learn(b, c.maxCount)
	return b
}

// Falses encodes a decision for each index in at, with the probability p[at[i]] and the outcome
// false, faster than Bit.
func (c *Coder) Falses(p []Prob, at []uint8) {
	if len(at) == 0 {
		return
	}
	e, rng := &c.Enc, c.Enc.rng
	last, cur := at[0], p[at[0]] // kept in registers while the index stays the same
	for _, i := range at {
		if i != last {
			p[last] = cur
			last, cur = i, p[i]
		}
		rng = (rng >> ScaleBits) * uint64(Scale-uint32(cur.P))
		// Same as learn with the outcome false.
		cur.P = uint16(max(uint32(cur.P)*uint32(Scale-rates[uint8(cur.N)])>>ScaleBits, unlikely))
		if cur.N < c.maxCount {
			cur.N++
		}
		if rng < least {
			e.rng = rng
			e.shift()
			rng = e.rng
		}
	}
	p[last], e.rng = cur, rng
}

// Raw codes the low n bits of v, 0 to 64, each with probability 1/2.
func (c *Coder) Raw(v uint64, n uint) uint64 {
	if c.Decoding {
		return c.Dec.Raw(n)
	}
	c.Enc.Raw(v, n)
	return v
}

// ScaleBits is the precision of all frequencies.
const ScaleBits = 16

// Scale is the sum of the frequencies of all outcomes of a decision.
const Scale = 1 << ScaleBits

// The range lies in [least, 2^64). When it falls below, it is scaled by 2^stepBits.
const (
	least     = 1 << 32
	stepBits  = 32
	stepBytes = stepBits / 8
)

// Prob is the adaptive probability P that a decision is true, in units of 1/65536, and the number N
// of decisions that adapted it. It adapts fast at first, and at a constant rate once N reaches the
// limit of the [Coder].
type Prob struct{ P, N uint16 }

// Half is the P of a decision whose outcomes are equally likely.
const Half = Scale / 2

// MaxCount is the maximum number of decisions after which the rate of adaptation is constant.
const MaxCount = 250

// unlikely is the minimum distance of a probability from 0 and 1, in units of 1/65536.
const unlikely = 24

// rates is the rate of adaptation by count, in units of 1/65536. The entries above MaxCount avoid a
// bounds check.
var rates = func() (r [1 << 8]int32) {
	for i := range r {
		r[i] = int32(2 * 65536 / (2*i + 3))
	}
	return r
}()

// learn adapts the probability to an outcome. N stops at maxCount.
func (c *Prob) learn(bit bool, maxCount uint16) {
	p, target := int32(c.P), int32(0)
	if bit {
		target = 65535
	}
	p += int32(int64(target-p) * int64(rates[uint8(c.N)]) >> 16)
	c.P = uint16(min(max(p, unlikely), Scale-unlikely))
	if c.N < maxCount {
		c.N++
	}
}

// Fill sets all probabilities of c to p, with count n, at most [MaxCount].
func Fill(c []Prob, p, n uint16) {
	for i := range c {
		c[i] = Prob{p, n}
	}
}

// Symbols is the number of symbols of a Table.
const Symbols = 64

const hintShift = ScaleBits - 6

// Table holds the frequencies of symbols. The zero value is not usable.
type Table struct {
	cum  [Symbols + 1]uint16 // symbol s occupies [cum[s], cum[s+1]); the last entry is Scale, stored as 0
	hint [1 << 6]uint8       // symbol at the start of each 64th of the scale
}

// Set sets the frequencies, each above 0, whose sum must be [Scale]; otherwise it panics.
func (t *Table) Set(freq *[Symbols]uint16) {
	sum := uint32(0)
	for s, f := range freq {
		for i := (sum + 1<<hintShift - 1) >> hintShift; i < (sum+uint32(f)+1<<hintShift-1)>>hintShift && i < 1<<6; i++ {
			t.hint[i] = uint8(s)
		}
		t.cum[s] = uint16(sum)
		sum += uint32(f)
		if f == 0 {
			sum = 0
			break
		}
	}
	if sum != Scale {
		panic("rangecoder: frequencies must be above 0 and add up to 65536")
	}
	t.cum[Symbols] = 0
}

// Int codes v, of at most 32 bits. level, below [Levels], is the expected magnitude; sign, below
// [Signs], is the context of the sign.
func (c *Coder) Int(m *IntModel, level, sign int, v int64) int64 {
	return c.IntWith(m, &m.length[level], level, sign, v)
}

// IntWith is like Int, but uses the length model l, which the caller initialized at the same level.
func (c *Coder) IntWith(m *IntModel, l *LengthModel, level, sign int, v int64) int64 {
	size := bits.Len64(uint64(max(v, -v)))
	n := c.length(l, middle(level), size)
	if n == 0 {
		return 0
	}
	negative := c.Bit(&m.sign[sign], v < 0)
	mag := uint64(1)
	if n > 1 {
		mag = c.mantissa(&m.mantissa[beyond(n, level)], uint(n-1), uint64(max(v, -v)))
	}
	if negative {
		return -int64(mag)
	}
	return int64(mag)
}

// mantissa codes the low n bits of v, whose bit n is set. The first three bits have adaptive
// probabilities.
func (c *Coder) mantissa(m *[8]Prob, n uint, v uint64) uint64 {
	node := uint64(1)
	for n > 0 && node < 8 {
		n--
		node <<= 1
		if c.Bit(&m[node>>1], v>>n&1 != 0) {
			node |= 1
		}
	}
	if n > 0 {
		node = node<<n | c.Raw(v&(1<<n-1), n)
	}
	return node
}

// Uint codes v, of at most 32 bits: its length with the probabilities of l, initialized at level,
// and the remaining bits raw.
func (c *Coder) Uint(l *LengthModel, level int, v uint64) uint64 {
	n := c.length(l, middle(level), bits.Len64(v))
	if n < 2 {
		return uint64(n)
	}
	rest := uint(n - 1)
	return 1<<rest | c.Raw(v&(1<<rest-1), rest)
}

// length codes the length of a magnitude in bits: whether it exceeds at, then the distance from at
// in unary.
func (c *Coder) length(l *LengthModel, at, size int) int {
	n := at
	c.Dec.Length(at)
	if c.Bit(&l[n], size > n) {
		for n++; n < MaxLength && c.Bit(&l[n], size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !c.Bit(&l[n-1], size > n-1); n-- {
	}
	return n
}
