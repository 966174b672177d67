package floor

import (
	"math"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/residual"
)

// clues are what the width of the noise of one value is judged by.
const clues = 8

// noise is the residuals of one component, with what hints at their width.
type noise struct {
	e     []float64
	clues [][clues]float64
	w     [clues]float64
	mix   residual.Mixture
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
	z.mix = residual.Even()
	bits := make([]float64, len(z.e))
	var each [residual.Parts]float64
	var second [clues]float64
	for pass := range 14 {
		rate := .02 / float64(1+pass/3)
		var counts [residual.Parts]float64
		for t, e := range z.e {
			l := z.level(t)
			const h = .1
			g := math.Log2(z.mix.Chance(e, l+h, &each)/z.mix.Chance(e, l-h, &each)) / (2 * h)
			g = max(-2, min(2, g))
			p := z.mix.Chance(e, l, &each)
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
