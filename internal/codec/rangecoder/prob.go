package rangecoder

// Prob is the adaptive probability P, of 65,536, that a decision is true, and N, the number of
// decisions that adapted it. It adapts fast at first, and at a constant rate once N reaches the
// limit of the [Coder].
type Prob struct{ P, N uint16 }

// Half is the P of a decision without a known tendency.
const Half = Scale / 2

// MaxCount is the maximum number of decisions after which the rate of adaptation is constant.
const MaxCount = 250

// unlikely is the distance that probabilities keep from 0 and 1.
const unlikely = 24

// rates has the rate of adaptation by count, of 65,536. The entries above MaxCount save a bounds
// check.
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
