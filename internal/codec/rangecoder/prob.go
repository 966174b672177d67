package rangecoder

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
