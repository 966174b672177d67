package floor

import (
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

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
