// Package residual says what the residuals of predictions are like, and what coding them takes at best.
package residual

import "math"

// Parts is how many distributions a [Mixture] mixes.
const Parts = shapes * widths

const (
	shapes = 3 // Gaussian, Laplace, Student's t of 2
	widths = 5
)

var spread = [widths]float64{.25, .5, 1, 2, 4}

// Mixture is how much each of several distributions weighs, of light to heavy tails and of several widths.
type Mixture [Parts]float64

// Even is the mixture in which all weigh the same.
func Even() (m Mixture) {
	for i := range m {
		m[i] = 1. / Parts
	}
	return m
}

// Chance is that of a residual that rounds to e, in steps, where the base-2 logarithm of its magnitude is expected to
// be l. each is filled with the distributions' parts of it.
func (m *Mixture) Chance(e, l float64, each *[Parts]float64) float64 {
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

// Log2 is that of a magnitude in steps, defined at 0.
func Log2(x float64) float64 { return math.Log2(math.Abs(x) + .3) }

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
