package floor

import (
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// features are what component k of f is predicted from at frame n: its own past
// and its neighbors', all that the fields coded before it show, and what its
// derivative says. y is its offset from the reference.
func (s *series) features(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	x = append(x[:0], 1)
	if f.kind == schema.KindQuat {
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
	for i := range s.fields {
		g := &s.fields[i]
		if g.name == f.name {
			break
		}
		x = s.shown(f, g, n, x)
	}
	return x, y
}

// shown appends what field g, coded before f, shows.
func (s *series) shown(f, g *field, n int, x []float64) []float64 {
	b := n - s.d
	switch g.kind {
	case schema.KindQuat, schema.KindFixed, schema.KindBytes:
	case schema.KindBits, schema.KindBool, schema.KindUint, schema.KindInt:
		for j := range g.n {
			if g.kind == schema.KindBits {
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
			if g.kind == schema.KindScalar || f.kind == schema.KindAngle {
				x = append(x, s.rows[n][g.at+j])
			}
		}
	}
	return x
}

func (f *field) quatOf(row []float64) quat.Float {
	return quat.UnpackFloat(int(row[f.at]), [3]float64(row[f.at+1:]), f.limit)
}

// turns appends where rotations lead, in the coordinates in which the true
// orientation is sent.
func (s *series) turns(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	big := int(s.rows[n][f.at])
	base := f.quatOf(s.rows[b])
	hold := base.Pack(big, f.limit)
	to := func(v [3]float64) {
		t := quat.ExpFloat(v).Mul(base).Pack(big, f.limit)
		for i := range k + 1 {
			x = append(x, t[i]-hold[i])
		}
	}
	for _, lag := range []int{1, 2, 4, s.d} {
		v := quat.BetweenFloat(f.quatOf(s.rows[b-lag]), base)
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
		to(mean)
		to(now)
		to(was)
		to(before)
		to(far)
	}
	for j := range k {
		x = append(x, s.rows[n][f.at+1+j]-hold[j])
	}
	return x, s.rows[n][f.at+1+k] - hold[k]
}

// margin is how many frames before the baseline are read.
const margin = 8

// field is a field in the order in which it is coded.
type field struct {
	name     string
	kind     schema.Kind
	at, n    int
	modulus  float64 // of an angle; 0 none
	limit    float64 // of a quat's smallest three
	velocity *field
	factor   float64 // what a step of velocity does in one frame: steps; of a quat, radians
}

// series is a trace in coding order.
type series struct {
	rows   [][]float64
	fields []field
	d      int
	causal bool        // fit and judge by what a receiver has then
	first  int         // first frame that is priced
	seen   [][]float64 // surprise of the components priced so far, by frame
}

func newSeries(t *trace.Trace, d int) *series {
	s := &series{d: d, first: 3*d + margin}
	all := t.Schema.Fields()
	at := 0
	var fields []field
	for _, f := range all {
		n := f.Values()
		switch {
		case f.Kind == schema.KindUnitVec:
			n = 2
		case f.Width > 32:
			n *= 2
		}
		x := field{name: f.Name, kind: f.Kind, at: at, n: n}
		if f.Kind == schema.KindAngle {
			x.modulus = math.Ldexp(1, f.Bits)
		}
		if f.Kind == schema.KindQuat {
			x.limit = math.Ldexp(1, f.Bits-1) - 1
		}
		if !f.IsBytes() {
			at += n
			fields = append(fields, x)
		}
	}
	for rank := range 5 {
		for i := range fields {
			if rankOf(all, &fields[i]) == rank {
				s.fields = append(s.fields, fields[i])
			}
		}
	}
	s.link(all, t.Schema.RateHz())
	for i := range t.Frames {
		row := make([]float64, at)
		for j, v := range t.Frames[i].Ints[:at] {
			row[j] = float64(v)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// rankOf orders fields: those that say something of others come first.
func rankOf(all []schema.Field, f *field) int {
	for _, g := range all {
		if g.Velocity == f.name {
			return 1
		}
	}
	for i, kinds := range [][]schema.Kind{
		{schema.KindAngle},
		{schema.KindVec2, schema.KindVec3, schema.KindUnitVec},
		{schema.KindQuat},
	} {
		if slices.Contains(kinds, f.kind) {
			return i + 2
		}
	}
	return 0
}

// link finds each field's derivative.
func (s *series) link(all []schema.Field, rate float64) {
	resolution := map[string]float64{}
	for _, f := range all {
		resolution[f.Name] = f.Resolution
	}
	for _, f := range all {
		for i := range s.fields {
			for j := range s.fields {
				if f.Velocity == "" || s.fields[i].name != f.Name || s.fields[j].name != f.Velocity {
					continue
				}
				scale := f.VelocityScale
				if scale == 0 {
					scale = 1
				}
				s.fields[i].factor = resolution[f.Velocity] * scale / rate
				if f.Kind != schema.KindQuat {
					s.fields[i].factor /= resolution[f.Name]
				}
				if math.Abs(s.fields[i].factor) < 1<<21 { // as far as the codec reads one
					s.fields[i].velocity = &s.fields[j]
				}
			}
		}
	}
}

// diff is the way from frame m to frame n of component at, the shorter one for
// an angle.
func (s *series) diff(f *field, at, n, m int) float64 {
	x := s.rows[n][at] - s.rows[m][at]
	if f.modulus > 0 {
		x = math.Mod(x+1.5*f.modulus, f.modulus) - f.modulus/2
	}
	return x
}
