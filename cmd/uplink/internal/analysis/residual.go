package analysis

import (
	"cmp"
	"math"
	"slices"
)

// Stats describes residuals, in steps.
type Stats struct {
	// Mean is the mean magnitude. P50, P90 and P99 are percentiles of the magnitude.
	Mean float64 `json:"mean_abs"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	// Zeros is the share of residuals that are 0.
	Zeros float64 `json:"zeros"`
	// Entropy is the entropy of the values in bits: the cost of a code that knows the frequency of
	// each value, but ignores their order. For few residuals it is too low, because most values
	// occur only once.
	Entropy float64 `json:"entropy_bits"`
}

// describeErrors returns the stats of e, which it sorts by magnitude.
func describeErrors(e []float64) (s Stats) {
	if len(e) == 0 {
		return s
	}
	slices.SortFunc(e, func(a, b float64) int {
		return cmp.Or(cmp.Compare(math.Abs(a), math.Abs(b)), cmp.Compare(a, b))
	})
	n := float64(len(e))
	run := 0
	for i, v := range e {
		s.Mean += math.Abs(v) / n
		if v == 0 {
			s.Zeros += 1 / n
		}
		run++
		if i+1 == len(e) || e[i+1] != v {
			s.Entropy -= float64(run) / n * math.Log2(float64(run)/n)
			run = 0
		}
	}
	at := func(share float64) float64 { return math.Abs(e[int(math.Ceil(share*n))-1]) }
	s.P50, s.P90, s.P99 = at(.5), at(.9), at(.99)
	return s
}

// parts is the number of distributions of a [mixture].
const parts = shapes * widths

const (
	shapes = 3 // Gaussian, Laplace, Student's t of 2
	widths = 5
)

var spread = [widths]float64{.25, .5, 1, 2, 4}

// mixture contains the weights of several distributions, with light to heavy tails and several
// widths.
type mixture [parts]float64

func even() (m mixture) {
	for i := range m {
		m[i] = 1. / parts
	}
	return m
}

// chance returns the probability of a residual that rounds to e, in steps. l is the expected base-2
// logarithm of its magnitude. each receives the contributions of the distributions.
func (m *mixture) chance(e, l float64, each *[parts]float64) float64 {
	s := math.Exp2(l)
	e = math.Abs(e)
	sum := 0.0
	for i, weight := range m {
		k := s * spread[i%widths]
		p := cdf(i/widths, -(e-.5)/k) - cdf(i/widths, -(e+.5)/k) + 1e-9
		each[i] = weight * p
		sum += each[i]
	}
	return sum
}

// log2 returns the base-2 logarithm of a magnitude in steps. It is defined at 0.
func log2(x float64) float64 { return math.Log2(math.Abs(x) + .3) }

func cdf(shape int, x float64) float64 {
	switch shape {
	case 0:
		return .5 * math.Erfc(-x*.7979/math.Sqrt2)
	case 1:
		if x < 0 {
			return .5 * math.Exp(x)
		}
		return 1 - .5*math.Exp(-x)
	}
	x *= 1.4
	return .5 + x/(2*math.Sqrt(2+x*x))
}

// flags is an ideal adaptive code of flags in one of four contexts each. The zero value has learned
// nothing.
type flags struct{ seen [4][2]float64 }

// recent is the number of past flags of a context that count.
const recent = 255

func (f *flags) bits(context int, yes bool) float64 {
	n := &f.seen[context&3]
	return -math.Log2((n[index(yes)] + .5) / (n[0] + n[1] + 1))
}

func (f *flags) learn(context int, yes bool) {
	n := &f.seen[context&3]
	n[index(yes)]++
	if n[0]+n[1] > recent {
		n[0] /= 2
		n[1] /= 2
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ideal is an ideal adaptive code of residuals. It is a [mixture] with learned weights around a
// width that follows earlier residuals as the codec adaptive does: by a fast average, a slow
// average, and the last residual. It has neither flags nor tables, and rounds nothing.
type ideal struct {
	mix              mixture
	counts           mixture
	total            float64
	fast, slow, last float64
}

func newIdeal() *ideal {
	c := &ideal{mix: even(), fast: 8, slow: 8, last: 8}
	for i := range c.counts {
		c.counts[i] = 2
		c.total += 2
	}
	return c
}

func (c *ideal) level() float64 {
	return max(-4, min(30, math.Log2((2*c.fast+4*c.slow+c.last)/7+.02)))
}

func (c *ideal) bits(e float64) float64 {
	var each [parts]float64
	return -math.Log2(c.mix.chance(e, c.level(), &each))
}

// forget is the factor by which each residual reduces the weight of earlier ones.
const forget = .999

func (c *ideal) learn(e float64) {
	var each [parts]float64
	p := c.mix.chance(e, c.level(), &each)
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
