package floor

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/residual"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// Bill is what a field takes: bits a frame.
type Bill struct {
	Field  string
	Flags  float64 // what changed, indexes and bits
	Values float64
}

// Least is how many frames there must be.
func Least(distance int) int { return 4 * (distance + margin) }

// Price gives what the fields of a trace take, but for byte strings, in the order in which they are coded, with each
// frame coded against the one distance before it. progress, if not nil, is called with the share that is done. Too few
// frames are an error.
func Price(t *trace.Trace, distance int, causal bool, progress func(done float64)) ([]Bill, error) {
	s := newSeries(t, distance)
	s.causal = causal
	if len(s.rows) < Least(distance) {
		return nil, fmt.Errorf("%s: %d frames are too few for distance %d: want at least %d", t.Name, len(s.rows), distance, Least(distance))
	}
	bills := make([]Bill, 0, len(s.fields))
	for i := range s.fields {
		if progress != nil {
			progress(float64(i) / float64(len(s.fields)))
		}
		b := s.price(&s.fields[i])
		b.Field = s.fields[i].name
		bills = append(bills, b)
	}
	return bills, nil
}

// price fits a field and gives its bits.
func (s *series) price(f *field) (b Bill) {
	n := float64(len(s.rows) - s.first)
	if f.kind == schema.KindBits || f.kind == schema.KindBool {
		b.Flags = s.bits(f) / n
		return b
	}
	c := contexts{}
	first := 0
	if f.kind == schema.KindQuat {
		first = 1
	}
	var earlier [][]float64 // surprise by frame of each component before, NaN none
	for k := range f.n - first {
		var z noise
		var xs [][]float64
		var ys []float64
		var at []int
		for t := s.first; t < len(s.rows); t++ {
			if f.kind != schema.KindQuat && s.flag(f, k, t, c) {
				continue
			}
			x, y := s.features(f, k, t, nil)
			xs, ys, at = append(xs, x), append(ys, y), append(at, t)
		}
		surprise := make([]float64, len(s.rows))
		for i := range surprise {
			surprise[i] = math.NaN()
		}
		if len(xs) > 0 {
			e := s.residuals(xs, ys)
			s.judge(&z, e, ys, at, earlier)
			sum := 0.0
			for i, v := range z.fit() {
				sum += v
				surprise[at[i]] = residual.Log2(e[i]) - z.level(i)
			}
			if f.kind == schema.KindUint || f.kind == schema.KindInt {
				sum = min(sum, s.common(f, k, at))
			}
			b.Values += sum / n
		}
		earlier = append(earlier, surprise)
		s.seen = append(s.seen, surprise)
	}
	b.Flags = c.bits() / n
	if f.kind == schema.KindQuat {
		b.Flags += s.indexes(f) / n
	}
	return b
}

// judge sets the clues: magnitudes over frames of the past that end with the
// baseline, and in hindsight over frames of the future that begin where this one's own
// steps end.
func (s *series) judge(z *noise, e, y []float64, at []int, earlier [][]float64) {
	mags := make([]float64, len(s.rows))
	for i := range mags {
		mags[i] = math.NaN()
	}
	for i, t := range at {
		mags[t] = e[i]
	}
	z.e = e
	for i, t := range at {
		var c [clues]float64
		c[0] = 1
		for j, w := range []int{2, 8, 40} {
			c[1+j] = residual.Log2(s.nearby(mags, t, w))
		}
		if k := len(earlier); k > 0 && !math.IsNaN(earlier[k-1][t]) {
			c[4] = earlier[k-1][t]
		}
		c[5] = s.surprise(t)
		c[6] = residual.Log2(y[i]-e[i]) - c[2]
		if k := len(earlier); k > 1 && !math.IsNaN(earlier[k-2][t]) {
			c[7] = earlier[k-2][t]
		}
		z.clues = append(z.clues, c)
	}
}

// surprise is the mean of what was coded before in frame t.
func (s *series) surprise(t int) float64 {
	sum, n := 0.0, 0.0
	for _, v := range s.seen {
		if !math.IsNaN(v[t]) {
			sum += v[t]
			n++
		}
	}
	return sum / max(n, 1)
}

// residuals are what the best weights leave.
func (s *series) residuals(x [][]float64, y []float64) []float64 {
	if s.causal {
		return foresight(x, y, s.d)
	}
	return hindsight(x, y)
}

// nearby is the mean magnitude of the w frames up to t-d and, in hindsight, the w from
// t+d on.
func (s *series) nearby(mags []float64, t, w int) float64 {
	sum, n := .3, .3
	add := func(i int) {
		if i >= 0 && i < len(mags) && !math.IsNaN(mags[i]) {
			sum += math.Abs(mags[i])
			n++
		}
	}
	for i := range w {
		add(t - s.d - i)
		if !s.causal {
			add(t + s.d + i)
		}
	}
	return sum / n
}
