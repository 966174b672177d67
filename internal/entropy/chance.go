package entropy

// Chance is how likely a decision is true, of 65,536, and how often it was met. It adapts: fast at first, and from
// slowest decisions on by the same part each time.
type Chance struct{ P, N uint16 }

// Half is the P of a decision of which nothing is known.
const Half = Scale / 2

// slowest is after how many decisions a chance no longer adapts slower.
const slowest = 250

// unlikely keeps chances away from 0 and 1.
const unlikely = 24

// rates are what a chance moves by, of 65,536.
var rates = func() (r [256]int32) {
	for i := range slowest + 1 {
		r[i] = int32(2 * 65536 / (2*i + 3))
	}
	return r
}()

// Learn takes in what a decision was.
func (c *Chance) Learn(bit bool) {
	p, target := int32(c.P), int32(0)
	if bit {
		target = 65535
	}
	p += int32(int64(target-p) * int64(rates[c.N&255]) >> 16)
	c.P = uint16(min(max(p, unlikely), Scale-unlikely))
	if c.N < slowest {
		c.N++
	}
}

// Fill makes all chances p, met n times, at most 250.
func Fill(c []Chance, p, n uint16) {
	for i := range c {
		c[i] = Chance{p, n}
	}
}
