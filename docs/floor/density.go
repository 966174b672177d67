package main

import "math"

// clues are what the width of the noise of one value is judged by.
const clues = 8

// noise is the residuals of one component, with what hints at their width.
type noise struct {
	e     []float64
	clues [][clues]float64
	w     [clues]float64
	mix   [shapes * widths]float64
}

const (
	shapes = 3 // Gaussian, Laplace, Student's t of 2
	widths = 5
)

var spread = [widths]float64{.25, .5, 1, 2, 4}

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

// chance is that of a residual that rounds to e, at log width l.
func (z *noise) chance(e, l float64, each *[shapes * widths]float64) float64 {
	s := math.Exp2(l)
	e = math.Abs(e)
	sum := 0.0
	for i := range z.mix {
		k := s * spread[i%widths]
		p := cdf(i/widths, -(e-.5)/k) - cdf(i/widths, -(e+.5)/k) + 1e-9
		each[i] = z.mix[i] * p
		sum += each[i]
	}
	return sum
}

func (z *noise) level(t int) float64 {
	l := 0.0
	for i, v := range z.clues[t] {
		l += z.w[i] * v
	}
	return max(-4, min(20, l))
}

// fit finds how the clues make a width, and the shape of the noise, that code
// the very same residuals best, and gives the bits of each.
func (z *noise) fit() []float64 {
	z.w = [clues]float64{0, .3, .4, .3}
	for i := range z.mix {
		z.mix[i] = 1 / float64(len(z.mix))
	}
	bits := make([]float64, len(z.e))
	var each [shapes * widths]float64
	var second [clues]float64
	for pass := range 14 {
		rate := .02 / float64(1+pass/3)
		var counts [shapes * widths]float64
		for t, e := range z.e {
			l := z.level(t)
			const h = .1
			g := math.Log2(z.chance(e, l+h, &each)/z.chance(e, l-h, &each)) / (2 * h)
			g = max(-2, min(2, g))
			p := z.chance(e, l, &each)
			bits[t] = -math.Log2(p)
			for i := range counts {
				counts[i] += each[i] / p
			}
			for i, v := range z.clues[t] {
				d := g * v
				second[i] += .005 * (d*d - second[i])
				z.w[i] += rate * d / (math.Sqrt(second[i]) + .3) / (1 + math.Abs(v))
			}
		}
		for i := range counts {
			z.mix[i] = max(1e-5, counts[i]/float64(len(z.e)))
		}
	}
	return bits
}
