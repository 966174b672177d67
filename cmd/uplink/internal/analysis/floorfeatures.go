package analysis

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// features appends the features that predict component k of f at frame n: its own past values and
// those of its neighbors, the earlier coded fields of the frame, and the derivative. y is the
// component's offset from the reference.
func (s *series) features(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	x = append(x[:0], 1)
	if f.Kind == schema.KindQuat {
		x, y = s.turns(f, k, n, x)
	} else {
		y = s.diff(f, f.at+k, n, b)
		for j := range f.n {
			for _, lag := range []int{1, 2, 4, s.d, 2 * s.d} {
				x = append(x, s.diff(f, f.at+j, b, b-lag))
			}
		}
		for j := range k {
			x = append(x, s.diff(f, f.at+j, n, b))
		}
		if v := f.velocity; v != nil {
			w := f.factor * float64(s.d)
			at := v.at + k
			x = append(x, w*s.rows[n][at], w*s.rows[b][at], w*s.diff(v, at, b, b-1), w*s.diff(v, at, b, b-s.d))
		}
	}
	for _, g := range s.fields {
		if g == f {
			break
		}
		x = s.shown(f, g, n, x)
	}
	return x, y
}

// shown appends the features that field g shows, which is coded before f.
func (s *series) shown(f, g *field, n int, x []float64) []float64 {
	b := n - s.d
	switch g.Kind {
	case schema.KindQuat, schema.KindFixed, schema.KindBytes:
	case schema.KindBits, schema.KindBool, schema.KindUint, schema.KindInt:
		for j := range g.n {
			if g.Kind == schema.KindBits {
				for bit := range 8 {
					x = append(x, float64(int64(s.rows[n][g.at+j])>>bit&1))
				}
				continue
			}
			x = append(x, s.rows[n][g.at+j], s.rows[b][g.at+j])
		}
	default:
		for j := range g.n {
			x = append(x, s.diff(g, g.at+j, n, b), s.diff(g, g.at+j, b, b-1))
			if g.Kind == schema.KindScalar || f.Kind == schema.KindAngle {
				x = append(x, s.rows[n][g.at+j])
			}
		}
	}
	return x
}

// turns appends the predictions of rotations, in the coordinates in which the actual orientation is
// sent.
func (s *series) turns(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	big := int(s.rows[n][f.at])
	base := f.orientation(s.rows[b])
	from := base.Pack(big, f.limit)
	to := func(v [3]float64) {
		t := quat.ExpFloat(v).Mul(base).Pack(big, f.limit)
		for i := range k + 1 {
			x = append(x, t[i]-from[i])
		}
	}
	for _, lag := range []int{1, 2, 4, s.d} {
		v := quat.BetweenFloat(f.orientation(s.rows[b-lag]), base)
		for i := range v {
			v[i] *= float64(s.d) / float64(lag)
		}
		to(v)
	}
	if w := f.velocity; w != nil {
		rate := func(m int) (v [3]float64) {
			for i := range v {
				v[i] = s.rows[m][w.at+i] * f.factor * float64(s.d)
			}
			return v
		}
		now, was, before, far := rate(n), rate(b), rate(b-1), rate(b-s.d)
		var mean [3]float64
		for i := range mean {
			mean[i] = (now[i] + was[i]) / 2
			before[i] = mean[i] + was[i] - before[i]
			far[i] = mean[i] + was[i] - far[i]
		}
		for _, v := range [][3]float64{mean, now, was, before, far} {
			to(v)
		}
	}
	for j := range k {
		x = append(x, s.rows[n][f.at+1+j]-from[j])
	}
	return x, s.rows[n][f.at+1+k] - from[k]
}

// margin is the number of frames before the baseline that features read.
const margin = 8

// series is a trace in coding order.
type series struct {
	rows   [][]float64
	fields []*field
	d      int
	first  int         // first frame that is counted
	seen   [][]float64 // surprise of the components counted so far, by frame
}

func newSeries(t *trace.Trace, d int) *series {
	s := &series{rows: rowsOf(t), d: d, first: 3*d + margin}
	all := fieldsOf(t.Schema)
	for rank := range 5 {
		for _, f := range all {
			if !f.IsBytes() && rankOf(all, f) == rank {
				s.fields = append(s.fields, f)
			}
		}
	}
	return s
}

// rankOf orders fields: fields that predict others come first.
func rankOf(all []*field, f *field) int {
	if slices.ContainsFunc(all, func(g *field) bool { return g.Velocity == f.Name }) {
		return 1
	}
	switch f.Kind {
	case schema.KindAngle:
		return 2
	case schema.KindVec2, schema.KindVec3, schema.KindUnitVec:
		return 3
	case schema.KindQuat:
		return 4
	default:
		return 0
	}
}

// diff returns the change of component at from frame m to frame n, in the shorter direction for an
// angle.
func (s *series) diff(f *field, at, n, m int) float64 {
	x := s.rows[n][at] - s.rows[m][at]
	if f.Kind == schema.KindAngle {
		return f.wrap(0, x)
	}
	return x
}
