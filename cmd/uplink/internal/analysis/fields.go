package analysis

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// field is a field of a trace with the data that predictors need.
type field struct {
	schema.Field
	index    int // index in the schema
	at, n    int // components in a frame
	modulus  []float64
	limit    float64 // bound of the smallest three of a quat
	velocity *field
	factor   float64 // change per frame for a step of the velocity, in steps, or in radians for a quat
}

func fieldsOf(s *schema.Schema) []*field {
	var out []*field
	named := map[string]*field{}
	for i, l := range s.Layouts() {
		x := &field{Field: *l.Field, index: i, at: l.At, n: l.N, modulus: make([]float64, l.N), limit: float64(l.Hi)}
		for k := range x.modulus {
			x.modulus[k] = x.period(k)
		}
		out, named[x.Name] = append(out, x), x
	}
	for _, x := range out {
		v := named[x.Velocity]
		if v == nil {
			continue
		}
		x.factor = v.Resolution * x.VelocityScale / s.RateHz()
		if x.Kind != schema.KindQuat {
			x.factor /= x.Resolution
		}
		if math.Abs(x.factor) < 1<<21 { // range that the codec supports
			x.velocity = v
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

// wrap returns the smallest equivalent difference of component k.
func (f *field) wrap(k int, x float64) float64 {
	if m := f.modulus[k]; m > 0 {
		return x - m*math.Floor(x/m+.5)
	}
	return x
}

func (f *field) orientation(row []float64) quat.Float {
	return quat.UnpackFloat(int(row[f.at]), [3]float64(row[f.at+1:]), f.limit)
}

// predicted reports whether the field has predictors.
func (f *field) predicted() bool {
	return f.n > 0 && f.Kind != schema.KindBits && f.Kind != schema.KindBool
}

// components returns the number of predicted components: all, except the index of a quat.
func (f *field) components() int {
	if f.Kind == schema.KindQuat {
		return 3
	}
	return f.n
}

// flagged reports whether each component has an unchanged flag of its own. A quaternion has one
// flag for all its components.
func (f *field) flagged() bool { return f.Kind != schema.KindQuat }

// measured reports whether the field is quantized and therefore has a rounding error.
func (f *field) measured() bool {
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar, schema.KindAngle, schema.KindQuat, schema.KindUnitVec:
		return true
	default:
		return false
	}
}

func rowsOf(t *trace.Trace) [][]float64 {
	rows := make([][]float64, len(t.Frames))
	for i := range rows {
		rows[i] = make([]float64, t.Schema.Components())
		for k, v := range t.Frames[i].Ints {
			rows[i][k] = float64(v)
		}
	}
	return rows
}
