package residual

import "math"

// Ideal is an ideal adaptive code of residuals: a [Mixture] whose weights are learned, about a width that follows the
// residuals that were learned before, the way the codec adaptive follows them: fast, slowly, and the very last. It has
// neither flags nor tables, and rounds nothing. Make one with [NewIdeal].
type Ideal struct {
	mix              Mixture
	counts           Mixture
	total            float64
	fast, slow, last float64
}

// NewIdeal is one that has learned nothing.
func NewIdeal() *Ideal {
	c := &Ideal{mix: Even(), fast: 8, slow: 8, last: 8}
	for i := range c.counts {
		c.counts[i] = 2
		c.total += 2
	}
	return c
}

// level is the expected magnitude, as its base-2 logarithm.
func (c *Ideal) level() float64 {
	return max(-4, min(30, math.Log2((2*c.fast+4*c.slow+c.last)/7+.02)))
}

// Bits is what e takes.
func (c *Ideal) Bits(e float64) float64 {
	var each [Parts]float64
	return -math.Log2(c.mix.Chance(e, c.level(), &each))
}

// forget is the share of what was learned that stays with each residual.
const forget = .999

// Learn learns that e was a residual.
func (c *Ideal) Learn(e float64) {
	var each [Parts]float64
	p := c.mix.Chance(e, c.level(), &each)
	c.total = c.total*forget + 1
	for i := range c.counts {
		c.counts[i] = c.counts[i]*forget + each[i]/p
		c.mix[i] = max(1e-5, c.counts[i]/c.total)
	}
	m := math.Abs(e)
	c.fast += (min(m, 8*c.fast+8) - c.fast) / 4
	c.slow += (min(m, 8*c.slow+8) - c.slow) / 24
	c.last = m
}
