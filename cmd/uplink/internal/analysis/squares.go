package analysis

import "math"

// squares fits a weighted sum of features to what they were to predict, sample by sample: recursive least squares, in
// which older samples fade, and unlikely ones count for less.
type squares struct {
	w, gain []float64
	p       [][]float64 // inverse of the features' correlation
	width   float64     // mean magnitude of errors
}

// Of the fit: how much of a sample is left after another one, and how sure the first weights are.
const (
	fade  = .999
	loose = 1
)

func newSquares(n int) *squares {
	s := &squares{w: make([]float64, n), gain: make([]float64, n), p: make([][]float64, n), width: 8}
	for i := range s.p {
		s.p[i] = make([]float64, n)
		s.p[i][i] = loose
	}
	return s
}

func (s *squares) predict(x []float64) (y float64) {
	for i, v := range x {
		y += s.w[i] * v
	}
	return y
}

func (s *squares) learn(x []float64, y float64) {
	e := y - s.predict(x)
	width := s.width + .3
	noise := width/4 + e*e/width // loud times count for less, but not for so little that nothing new is learned
	s.width += (min(max(e, -e), 8*s.width+8) - s.width) / 24
	sum := fade * noise
	for i := range x {
		s.gain[i] = 0
		for j, v := range x {
			s.gain[i] += s.p[i][j] * v
		}
		sum += x[i] * s.gain[i]
	}
	for i := range x {
		s.w[i] += s.gain[i] / sum * e
	}
	for i := range x {
		for j := range i + 1 {
			v := (s.p[i][j] - s.gain[i]*s.gain[j]/sum) / fade
			s.p[i][j], s.p[j][i] = v, v
		}
	}
	for i := range x { // what is not seen for long gets no looser than it was
		if v := s.p[i][i]; v > loose {
			k := math.Sqrt(loose / v)
			for j := range x {
				s.p[i][j] *= k
				s.p[j][i] *= k
			}
		}
	}
}
