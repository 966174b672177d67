package analysis

import "math"

// block is the number of frames that share one set of weights.
const block = 1500

// hindsight fits the features of each block of frames to the offsets of the same frames, and
// returns the residuals.
func hindsight(x [][]float64, y []float64) []float64 {
	e := make([]float64, len(y))
	for from := 0; from < len(y); {
		to := min(from+block, len(y))
		if len(y)-to < block/2 {
			to = len(y)
		}
		left(x[from:to], y[from:to], e[from:to], fit(x[from:to], y[from:to]))
		from = to
	}
	return e
}

// left sets e to the residuals of the offsets with weights w.
func left(x [][]float64, y, e, w []float64) {
	for t, r := range x {
		e[t] = y[t]
		for i, v := range r {
			e[t] -= w[i] * v
		}
	}
}

// fit returns the weights of the features. The noise model has the width of the nearby residuals
// and heavier tails than a Gaussian distribution.
func fit(x [][]float64, y []float64) (w []float64) {
	n := len(x[0])
	e := append([]float64(nil), y...)
	norm := make([]float64, n)
	for _, r := range x {
		for i, v := range r {
			norm[i] += v * v
		}
	}
	for i := range norm {
		norm[i] = 1 / math.Sqrt(norm[i]/float64(len(x))+1e-9)
	}
	row := make([]float64, n)
	for range 6 {
		width := around(e, 20)
		a := make([][]float64, n)
		for i := range a {
			a[i] = make([]float64, n+1)
			a[i][i] = 1e-3
		}
		for t, r := range x {
			s := width[t] + .3
			w := 1 / (s*s/4 + e[t]*e[t])
			for i, v := range r {
				row[i] = v * norm[i]
			}
			for i, v := range row {
				for j := i; j < n; j++ {
					a[i][j] += w * v * row[j]
				}
				a[i][n] += w * v * y[t]
			}
		}
		w = solve(a)
		for i := range w {
			w[i] *= norm[i]
		}
		left(x, y, e, w)
	}
	return w
}

// around returns the mean magnitude over w frames in both directions.
func around(e []float64, w int) []float64 {
	sum := make([]float64, len(e)+1)
	for i, v := range e {
		sum[i+1] = sum[i] + math.Abs(v)
	}
	out := make([]float64, len(e))
	for i := range e {
		a, b := max(0, i-w), min(len(e), i+w+1)
		out[i] = (sum[b] - sum[a]) / float64(b-a)
	}
	return out
}

// solve solves symmetric linear equations. a contains the upper half of the matrix, and the right
// side in the last column.
func solve(a [][]float64) []float64 {
	n := len(a)
	for i := range n {
		for j := range i {
			a[i][j] = a[j][i]
		}
	}
	for i := range n {
		p := a[i][i]
		for r := i + 1; r < n; r++ {
			k := a[r][i] / p
			if k == 0 {
				continue
			}
			for c := i; c <= n; c++ {
				a[r][c] -= k * a[i][c]
			}
		}
	}
	w := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		v := a[i][n]
		for j := i + 1; j < n; j++ {
			v -= a[i][j] * w[j]
		}
		w[i] = v / a[i][i]
	}
	return w
}

// clues is the number of inputs that predict the width of the noise of one value.
const clues = 8

// noise contains the residuals of one component, with clues to their width.
type noise struct {
	e     []float64
	clues [][clues]float64
	w     [clues]float64
	mix   mixture
}

func (z *noise) level(t int) float64 {
	l := 0.0
	for i, v := range z.clues[t] {
		l += z.w[i] * v
	}
	return max(-4, min(20, l))
}

// fit fits the width as a function of the clues, and the shape of the noise, to these residuals at
// minimum cost. It returns the bits of each residual.
func (z *noise) fit() []float64 {
	z.w = [clues]float64{0, .3, .4, .3}
	z.mix = even()
	bits := make([]float64, len(z.e))
	var each [parts]float64
	var second [clues]float64
	for pass := range 14 {
		rate := .02 / float64(1+pass/3)
		var counts [parts]float64
		for t, e := range z.e {
			l := z.level(t)
			const h = .1
			g := math.Log2(z.mix.chance(e, l+h, &each)/z.mix.chance(e, l-h, &each)) / (2 * h)
			g = max(-2, min(2, g))
			p := z.mix.chance(e, l, &each)
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
