package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Recording is a trace with the values that were recorded.
type Recording struct {
	*trace.Trace
	values [][]float64 // values of all rows, by field
}

// Load reads a trace and its values. Errors of package trace name the file, the row and the column.
// A damaged trace has the rows before the damage.
func Load(path string, s *schema.Schema) (_ *Recording, err error) {
	t, damaged := trace.Load(path, s)
	if t == nil {
		return nil, damaged
	}
	in, err := trace.Open(path, t.Schema)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r := &Recording{Trace: t, values: make([][]float64, len(t.Schema.Fields()))}
	f := t.Schema.NewFrame()
	for range t.Frames {
		if err := in.Read(f); err != nil {
			return nil, err
		}
		for i := range r.values {
			r.values[i] = append(r.values[i], in.Floats(i)...)
		}
	}
	return r, damaged
}

// Restored returns a recording of a trace's own frames: its values are the restored ones.
func Restored(t *trace.Trace) *Recording {
	r := &Recording{Trace: t, values: make([][]float64, len(t.Schema.Fields()))}
	for n := range t.Frames {
		for i := range r.values {
			r.values[i] = t.Schema.RestoreField(r.values[i], &t.Frames[n], i)
		}
	}
	return r
}

// Values returns the recorded values of a field in a row. The slice is read-only and valid as long
// as r. It is empty for a byte string.
func (r *Recording) Values(row, field int) []float64 {
	all := r.values[field]
	n := len(all) / len(r.Frames)
	return all[row*n : (row+1)*n]
}

// RoundingError returns the maximum difference between frames and recorded values of a field, in
// the unit of [Error].
func (r *Recording) RoundingError(index int) (most float64) {
	f := fieldsOf(r.Schema)[index]
	if !f.measured() {
		return 0
	}
	var buf []float64
	for n := range r.Frames {
		buf = r.Schema.RestoreField(buf[:0], &r.Frames[n], index)
		most = max(most, Off(f.Kind, buf, r.Values(n, index)))
	}
	return most
}

// As returns every stride-th row of the recording as a trace of schema s, which has the same fields
// at another resolution and rate. An error names the row.
func (r *Recording) As(s *schema.Schema, stride int) (*Recording, error) {
	out := &Recording{Trace: &trace.Trace{Name: r.Name, Schema: s}, values: make([][]float64, len(r.values))}
	same := fieldsOf(s)
	for n := 0; n < len(r.Frames); n += stride {
		f := s.NewFrame()
		for _, x := range same {
			values := r.Values(n, x.index)
			var err error
			switch {
			case x.IsBytes():
				err = s.SetBytes(f, x.index, r.Schema.BytesOf(&r.Frames[n], x.index))
			case x.measured():
				err = s.QuantizeField(f, x.index, values)
			default:
				copy(f.Ints[x.at:x.at+x.n], r.Frames[n].Ints[x.at:])
			}
			if err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", r.Name, n+1, err)
			}
			out.values[x.index] = append(out.values[x.index], values...)
		}
		out.Frames = append(out.Frames, *f)
	}
	return out, nil
}

// Off returns the difference between values a and b of a field of kind k: the distance of vectors,
// the largest difference of scalars and angles, or the angle of rotations and directions in
// degrees.
func Off(k schema.Kind, a, b []float64) (e float64) {
	switch k {
	case schema.KindQuat:
		return degrees(2 * angle(a, b, true))
	case schema.KindUnitVec:
		return degrees(angle(a, b, false))
	case schema.KindVec2, schema.KindVec3:
		for i := range a {
			e = math.Hypot(e, a[i]-b[i])
		}
		return e
	default:
		for i := range a {
			d := math.Abs(a[i] - b[i])
			if k == schema.KindAngle {
				d = math.Abs(math.Remainder(d, 360))
			}
			e = max(e, d)
		}
		return e
	}
}

func degrees(radians float64) float64 { return radians * 180 / math.Pi }

// angle returns the angle between two vectors. If either is set, it is the smaller of the angles to
// b and -b.
func angle(a, b []float64, either bool) float64 {
	na, nb := length(a), length(b)
	if na == 0 || nb == 0 {
		return 0
	}
	sign, sum, diff := 1., 0., 0.
	dot := 0.
	for i := range a {
		dot += a[i] * b[i]
	}
	if either && dot < 0 {
		sign = -1
	}
	for i := range a { // by the sine of half the angle, which is exact for small angles
		x, y := a[i]/na, sign*b[i]/nb
		sum, diff = math.Hypot(sum, x+y), math.Hypot(diff, x-y)
	}
	return 2 * math.Atan2(diff, sum)
}

func length(v []float64) (n float64) {
	for _, x := range v {
		n = math.Hypot(n, x)
	}
	return n
}

// coarser returns the schema with all resolutions multiplied by factor, and with another rate.
// Fields with a number of bits lose or gain bits.
func coarser(s *schema.Schema, factor, rateHz float64) (*schema.Schema, error) {
	fields := slices.Clone(s.Fields())
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Resolution != 0:
			f.Resolution *= factor
			WholeSteps(f)
		case f.Bits != 0:
			least, most := BitRange(f.Kind)
			f.Bits = max(least, min(most, f.Bits-int(math.Round(math.Log2(factor)))))
		}
	}
	out, err := schema.New(s.RPC(), rateHz, fields)
	if err != nil {
		return nil, fmt.Errorf("resolution x %g: %w", factor, err)
	}
	return out, nil
}

// WholeSteps moves the bounds of a field outward to whole numbers of steps.
func WholeSteps(f *schema.Field) {
	move := func(bound *float64, round func(float64) float64) *float64 {
		if bound == nil {
			return nil
		}
		return new(round(*bound/f.Resolution) * f.Resolution)
	}
	f.Min, f.Max = move(f.Min, math.Floor), move(f.Max, math.Ceil)
}

// BitRange returns the permitted bits of an angle, quat or unitvec.
func BitRange(k schema.Kind) (least, most int) {
	if k == schema.KindAngle {
		return 2, 24
	}
	return 3, 20
}
