// Package entropy is a range coder with 16-bit frequencies for small payloads:
// nothing is spent on a header, and a payload ends at the last byte that zero
// padding does not imply, so that a likely one is 0 bytes long. A [Coder] is either half of it, and codes decisions
// and [IntModel] by chances that adapt.
//
// Integers only: the same bits on every platform. None of it allocates,
// apart from growth of the encoder's buffer, or is safe for concurrent use.
package rangecoder

// Coder is either half of the range coder, so that one walk through a payload serves both ends. Reset the half that
// is used. While encoding, a method takes what is coded and gives it back; while decoding it gives what was coded, whatever it
// is given.
type Coder struct {
	Enc      Encoder
	Dec      Decoder
	Decoding bool
	slowest  uint16
}

// NewCoder makes a coder whose chances no longer adapt slower after so many decisions, at most [MaxCount].
func NewCoder(slowest uint16, decoding bool) Coder {
	return Coder{slowest: slowest, Decoding: decoding}
}

// Bit codes a decision by a chance, which learns it.
func (c *Coder) Bit(p *Prob, b bool) bool {
	p0 := Scale - uint32(p.P)
	if c.Decoding {
		b = c.Dec.BitNoRenorm(p0)
		c.Dec.Renorm()
	} else {
		c.Enc.BitNoRenorm(b, p0)
		c.Enc.Renorm()
	}
	p.learn(b, c.slowest)
	return b
}

// Raw codes the low n bits of v, n at most 64, each value alike.
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

// The range lies in [least, 2^64); it grows by stepBits where it falls below.
const (
	least     = 1 << 32
	stepBits  = 32
	stepBytes = stepBits / 8
)

// Prob is how likely a decision is true, of 65,536, and how often it was met. It adapts: fast at first, and by
// a part that stays the same from as many decisions on as the [Coder] says.
type Prob struct{ P, N uint16 }

// Half is the P of a decision of which nothing is known.
const Half = Scale / 2

// MaxCount is the most decisions after which chances no longer adapt slower.
const MaxCount = 250

// unlikely keeps chances away from 0 and 1.
const unlikely = 24

// rates are what a chance moves by, of 65,536; those beyond MaxCount save a check.
var rates = func() (r [1 << 8]int32) {
	for i := range r {
		r[i] = int32(2 * 65536 / (2*i + 3))
	}
	return r
}()

// learn takes in what a decision was; n stays at slowest.
func (c *Prob) learn(bit bool, slowest uint16) {
	p, target := int32(c.P), int32(0)
	if bit {
		target = 65535
	}
	p += int32(int64(target-p) * int64(rates[uint8(c.N)]) >> 16)
	c.P = uint16(min(max(p, unlikely), Scale-unlikely))
	if c.N < slowest {
		c.N++
	}
}

// Fill makes all chances p, met n times, at most [MaxCount].
func Fill(c []Prob, p, n uint16) {
	for i := range c {
		c[i] = Prob{p, n}
	}
}

// Symbols is the number of symbols of a Table.
const Symbols = 64

// hintShift turns a frequency into the index of a hint.
const hintShift = ScaleBits - 6

// Table holds the frequencies of symbols. The zero value is not usable.
type Table struct {
	cum  [Symbols + 1]uint16 // symbol s lies in [cum[s], cum[s+1]); the last stands for Scale as 0
	hint [1 << 6]uint8       // the symbol in which each 64th of the scale begins
}

// Set makes t the table of the given frequencies, each above 0, whose sum is
// [Scale]. It panics if they are not so.
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
