package analysis

import (
	"context"
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
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

// field is a field of a trace as predictors see it.
type field struct {
	schema.Field
	index    int // in the schema
	at, n    int // components of a frame
	modulus  []float64
	limit    float64 // of a quat's smallest three
	velocity *field
	factor   float64 // what a step of the velocity does in one frame: steps, or of a quat radians
}

// fieldsOf returns the schema's fields.
func fieldsOf(s *schema.Schema) []*field {
	var out []*field
	at := 0
	for i, f := range s.Fields() {
		x := &field{Field: f, index: i, at: at, n: f.Values()}
		switch {
		case f.IsBytes():
			x.n = 0
		case f.Kind == schema.KindUnitVec:
			x.n = 2
		case f.Width > 32:
			x.n *= 2
		}
		at += x.n
		x.modulus = make([]float64, x.n)
		for k := range x.modulus {
			x.modulus[k] = x.period(k)
		}
		if f.Kind == schema.KindQuat {
			x.limit = math.Ldexp(1, f.Bits-1) - 1
		}
		out = append(out, x)
	}
	for _, x := range out {
		for _, v := range out {
			if x.Velocity == "" || v.Name != x.Velocity {
				continue
			}
			x.factor = v.Resolution * x.VelocityScale / s.RateHz()
			if x.Kind != schema.KindQuat {
				x.factor /= x.Resolution
			}
			if math.Abs(x.factor) < 1<<21 { // as far as the codec reads one
				x.velocity = v
			}
		}
	}
	return out
}

// period returns the modulus of component k, 0 if it does not wrap around.
func (f *field) period(k int) float64 {
	switch {
	case f.Kind == schema.KindAngle:
		return math.Ldexp(1, f.Bits)
	case f.Kind != schema.KindUint && f.Kind != schema.KindInt:
		return 0
	case f.Width <= 32:
		return math.Ldexp(1, f.Width)
	case k%2 == 0:
		return math.Ldexp(1, 32)
	}
	return math.Ldexp(1, f.Width-32)
}

// predicted reports whether the field has predictors.
func (f *field) predicted() bool {
	return f.n > 0 && f.Kind != schema.KindBits && f.Kind != schema.KindBool
}

// components is how many of its components are predicted: of a quat all but the index.
func (f *field) components() int {
	if f.Kind == schema.KindQuat {
		return 3
	}
	return f.n
}

// flagged reports whether each component has an unchanged flag of its own; a quaternion has one for
// all its components.
func (f *field) flagged() bool { return f.Kind != schema.KindQuat }

// wrap returns the smallest equivalent difference of an angle.
func (f *field) wrap(k int, x float64) float64 {
	if m := f.modulus[k]; m > 0 {
		return x - m*math.Floor(x/m+.5)
	}
	return x
}

// predictors are those that the field can have.
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
	t *trace.Trace
	n int
	moment
}

func (v *view) x(n, k int) float64 { return float64(v.t.Frames[n].Ints[v.at+k]) }

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

// rate returns the change of component k per frame that the velocity predicts.
func (v *view) rate(n, k int) float64 {
	return float64(v.t.Frames[n].Ints[v.velocity.at+k]) * v.factor
}

func (v *view) orientation(n int) quat.Float {
	f := v.t.Frames[n].Ints[v.at:]
	return quat.UnpackFloat(int(f[0]), [3]float64{float64(f[1]), float64(f[2]), float64(f[3])}, v.limit)
}

// turns is offsets for an orientation, in the coordinates in which it is sent.
func (v *view) turns(k int, to []float64) (_ []float64, y float64) {
	big := int(v.x(v.n, 0))
	base := v.orientation(v.base)
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
		return turn(quat.BetweenFloat(v.orientation(back), base), d/float64(v.base-back))
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

// moments contains the moments of all frames of a run.
type moments struct {
	of    []moment
	known []bool // by frame: it came, and in time
}

// reach is how far before a baseline others are looked for.
const reach = 64

// newMoments returns the moments of a trace: over a link or at a fixed distance, as cfg sets.
func newMoments(ctx context.Context, t *trace.Trace, cfg *Config) (*moments, error) {
	n := len(t.Frames)
	m := &moments{of: make([]moment, n), known: make([]bool, n)}
	var course bench.Course
	if cfg.Distance == 0 {
		var err error
		course, err = bench.NewCourse(ctx, n, t.Schema.RateHz(), bench.Config{Link: cfg.Link, AckHz: cfg.AckHz, Ring: cfg.Ring, Suite: cfg.Suite})
		if err != nil {
			return nil, err
		}
	}
	for i := range n {
		base := i - cfg.Distance
		if course != nil {
			base = course[i].Base
		}
		m.known[i] = course == nil || course[i].Arrived
		m.of[i] = moment{base: base, prior: -1, far: -1}
		if base < 0 {
			m.of[i].base = -1
			continue
		}
		m.of[i].prior = m.newest(base - 1)
		m.of[i].far = m.newest(base - (i - base))
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
