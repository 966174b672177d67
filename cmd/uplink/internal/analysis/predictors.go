package analysis

import (
	"context"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/schema"
)

// Names of the predictors.
const (
	hold         = "hold"
	slope        = "linear, last step"
	farSlope     = "linear, over the distance"
	oldRate      = "old velocity"
	meanRate     = "mean velocity"
	leastSquares = "least squares"
)

var predictorNames = [...]string{hold, slope, farSlope, oldRate, meanRate, leastSquares}

func (f *field) predictors() []string {
	out := []string{hold, slope, farSlope}
	if f.velocity != nil {
		if f.Kind != schema.KindQuat {
			out = append(out, oldRate)
		}
		out = append(out, meanRate)
	}
	return append(out, leastSquares)
}

// view is one frame of a field, and what it may be predicted from.
type view struct {
	*field
	rows [][]float64
	n    int
	moment
}

func (v *view) x(n, k int) float64 { return v.rows[n][v.at+k] }

// offsets appends, for component k, where the field's predictors lead from the reference, but for
// least squares, and gives where it is.
func (v *view) offsets(k int, to []float64) (_ []float64, y float64) {
	if v.Kind == schema.KindQuat {
		return v.turns(k, to)
	}
	d := float64(v.n - v.base)
	step := func(from, back int) float64 {
		if back < 0 {
			return 0
		}
		return v.wrap(k, v.x(from, k)-v.x(back, k)) * d / float64(from-back)
	}
	to = append(to, 0, step(v.base, v.prior), step(v.base, v.far))
	if w := v.velocity; w != nil {
		was, now := v.rate(v.base, k), v.rate(v.n, k)
		to = append(to, was*d, (was+now)/2*d)
	}
	return to, v.wrap(k, v.x(v.n, k)-v.x(v.base, k))
}

// context returns the context of component k's unchanged flag: whether the component changed before
// its baseline, and over the distance.
func (v *view) context(k int) (c int) {
	if v.prior >= 0 && v.x(v.base, k) != v.x(v.prior, k) {
		c = 1
	}
	if v.far >= 0 && v.x(v.base, k) != v.x(v.far, k) {
		c |= 2
	}
	return c
}

func (v *view) rate(n, k int) float64 {
	return v.rows[n][v.velocity.at+k] * v.factor
}

// turns is offsets for an orientation, in the coordinates in which it is sent.
func (v *view) turns(k int, to []float64) (_ []float64, y float64) {
	big := int(v.x(v.n, 0))
	base := v.orientation(v.rows[v.base])
	held := math.Round(base.Pack(big, v.limit)[k])
	d := float64(v.n - v.base)
	turn := func(w [3]float64, times float64) float64 {
		for i := range w {
			w[i] *= times
		}
		return quat.ExpFloat(w).Mul(base).Pack(big, v.limit)[k] - held
	}
	since := func(back int) float64 {
		if back < 0 {
			return 0
		}
		return turn(quat.BetweenFloat(v.orientation(v.rows[back]), base), d/float64(v.base-back))
	}
	to = append(to, 0, since(v.prior), since(v.far))
	if v.velocity != nil {
		var w [3]float64
		for i := range w {
			w[i] = (v.rate(v.base, i) + v.rate(v.n, i)) / 2
		}
		to = append(to, turn(w, d))
	}
	return to, v.x(v.n, 1+k) - held
}

// moment is what one frame may be predicted from: numbers of frames that the server was known to
// hold, -1 none.
type moment struct {
	base  int // the newest
	prior int // the newest before it
	far   int // the newest at least as far before it as it is old
}

type moments struct {
	of    []moment
	known []bool // by frame: it came, and in time
}

// reach is how far before a baseline others are looked for.
const reach = 64

// newMoments returns the moments of a trace: over a link or at a fixed distance, as cfg sets.
func newMoments(ctx context.Context, t *trace.Trace, cfg bench.Config) (*moments, error) {
	n := len(t.Frames)
	m := &moments{of: make([]moment, n), known: slices.Repeat([]bool{true}, n)}
	for i := range m.of {
		m.of[i].base = max(i-cfg.Distance, -1)
	}
	if cfg.Distance == 0 {
		link := bench.Config{Link: cfg.Link, AckHz: cfg.AckHz, Ring: cfg.Ring, Suite: cfg.Suite}
		course, err := bench.NewCourse(ctx, n, t.Schema.RateHz(), link)
		if err != nil {
			return nil, err
		}
		for i, p := range course {
			m.of[i].base, m.known[i] = p.Base, p.Arrived
		}
	}
	for i := range m.of {
		x := &m.of[i]
		if x.prior, x.far = -1, -1; x.base >= 0 {
			x.prior, x.far = m.newest(x.base-1), m.newest(2*x.base-i)
		}
	}
	return m, nil
}

// newest returns the newest known frame up to n.
func (m *moments) newest(n int) int {
	for k := n; k >= max(0, n-reach+1); k-- {
		if m.known[k] {
			return k
		}
	}
	return -1
}

// squares fits a weighted sum of features by recursive least squares, with exponential forgetting
// and lower weights of outliers.
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
