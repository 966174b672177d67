package analysis

import (
	"context"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
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

// view is one frame of a field, with the frames that can predict it.
type view struct {
	*field
	rows [][]float64
	n    int
	moment
}

func (v *view) x(n, k int) float64 { return v.rows[n][v.at+k] }

// offsets appends the predicted offsets of component k from the reference, one for each predictor
// of the field except least squares. y is the actual offset.
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

// context returns the context of component k's unchanged flag: whether the component changed in the
// frame before its baseline, and over the distance.
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

// moment lists the frames that one frame may be predicted from: numbers of frames that the server
// was known to hold, -1 for none.
type moment struct {
	base  int // newest known frame
	prior int // newest known frame before base
	far   int // newest known frame at least as far before base as base is old
}

type moments struct {
	of    []moment
	known []bool // by frame: it arrived in time
}

// reach is the number of frames before a baseline that are searched.
const reach = 64

// newMoments returns the moments of a trace, over the link or at the fixed distance of cfg.
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

// squares fits a weighted sum of features by recursive least squares. Old samples are forgotten
// exponentially, and outliers have lower weights.
type squares struct {
	w, gain []float64
	p       [][]float64 // inverse of the features' correlation
	width   float64     // mean magnitude of errors
}

// fade is the weight of a sample relative to the next one. loose is the initial uncertainty of the
// weights.
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
	noise := width/4 + e*e/width // larger errors weigh less, but enough to learn from them
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
	for i := range x { // features not seen for long do not become less certain than initially
		if v := s.p[i][i]; v > loose {
			k := math.Sqrt(loose / v)
			for j := range x {
				s.p[i][j] *= k
				s.p[j][i] *= k
			}
		}
	}
}
