package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// Recording is a trace with the values that were recorded.
type Recording struct {
	*trace.Trace
	values [][]float64 // by row, those of its fields one after the other
	at     []int       // by field, where its values begin in a row, and one more for the end
}

// Load reads a trace and its values. Errors are those of package trace: they name the file, the row
// and the column.
func Load(path string, s *schema.Schema) (*Recording, error) {
	t, damaged := trace.Load(path, s)
	if t == nil {
		return nil, damaged
	}
	out := &Recording{Trace: t}
	if err := out.read(path); err != nil {
		return nil, err
	}
	return out, damaged
}

// read reads the values of the frames that there are.
func (r *Recording) read(path string) (err error) {
	in, err := trace.Open(path, r.Schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	f := r.Schema.NewFrame()
	r.at = offsets(r.Schema)
	r.values = make([][]float64, 0, len(r.Frames))
	for range r.Frames {
		if err := in.Read(f); err != nil {
			return err
		}
		row := make([]float64, 0, r.at[len(r.at)-1])
		for i := range r.Schema.Fields() {
			row = append(row, in.Floats(i)...)
		}
		r.values = append(r.values, row)
	}
	return nil
}

// offsets returns where the values of each field begin in a row, and where the last ones end. A
// byte string has none.
func offsets(s *schema.Schema) []int {
	at := make([]int, 1, len(s.Fields())+1)
	for i := range s.Fields() {
		n := at[i]
		if f := &s.Fields()[i]; !f.IsBytes() {
			n += f.Values()
		}
		at = append(at, n)
	}
	return at
}

// Values are what was recorded of a field in a row; valid as long as r, and read only. A byte
// string has none.
func (r *Recording) Values(row, field int) []float64 {
	return r.values[row][r.at[field]:r.at[field+1]:r.at[field+1]]
}

// RoundingError is how far the frames are from what was recorded of a field, at most, in the unit
// of [Error].
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

// As is every stride-th row of the recording as a trace of another schema, which has the same
// fields at another resolution and rate. An error names the row.
func (r *Recording) As(s *schema.Schema, stride int) (*Recording, error) {
	out := &Recording{Trace: &trace.Trace{Name: r.Name, Schema: s}, at: r.at}
	same := fieldsOf(s)
	for n := 0; n < len(r.Frames); n += stride {
		f := s.NewFrame()
		for _, x := range same {
			if err := requantize(s, f, x, &r.Frames[n], r.Values(n, x.index)); err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", r.Name, n+1, err)
			}
		}
		out.Frames = append(out.Frames, *f)
		out.values = append(out.values, r.values[n])
	}
	return out, nil
}

// requantize sets a field of dst, of the values or, where these are no numbers of a resolution, of
// src.
func requantize(s *schema.Schema, dst *schema.Frame, f *field, src *schema.Frame, values []float64) error {
	switch {
	case f.IsBytes():
		return s.SetBytes(dst, f.index, s.BytesOf(src, f.index))
	case !f.measured():
		copy(dst.Ints[f.at:f.at+f.n], src.Ints[f.at:])
		return nil
	}
	return s.QuantizeField(dst, f.index, values)
}

// measured reports whether the field is quantized, so that it has an error.
func (f *field) measured() bool {
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar, schema.KindAngle, schema.KindQuat, schema.KindUnitVec:
		return true
	default:
		return false
	}
}

// Off is how far values a of a field of that kind are from b: the distance of vectors; of scalars
// and angles the largest difference; of rotations and directions the angle in degrees.
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

// angle is that between two vectors, or with either way round the least.
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
	for i := range a { // by the sine of half of it: exact where it is small
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

// coarser is the schema with each resolution so many times as coarse, at another rate. Fields that
// are divided into bits lose or gain them.
func coarser(s *schema.Schema, factor, rateHz float64) (*schema.Schema, error) {
	fields := slices.Clone(s.Fields())
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Resolution != 0:
			f.Resolution *= factor
			if f.Min == nil && f.Max == nil {
				continue
			}
			// Bounds are whole steps; one that is not moves outward.
			f.Min, f.Max = outward(f.Min, f.Resolution, math.Floor), outward(f.Max, f.Resolution, math.Ceil)
		case f.Kind == schema.KindAngle:
			f.Bits = clampBits(f.Bits, factor, 2, 24)
		case f.Kind == schema.KindQuat || f.Kind == schema.KindUnitVec:
			f.Bits = clampBits(f.Bits, factor, 3, 20)
		}
	}
	out, err := schema.New(s.RPC(), rateHz, fields)
	if err != nil {
		return nil, fmt.Errorf("resolution x %g: %w", factor, err)
	}
	return out, nil
}

func outward(v *float64, resolution float64, round func(float64) float64) *float64 {
	if v == nil {
		return nil
	}
	x := round(*v/resolution) * resolution
	return &x
}

func clampBits(bits int, factor float64, least, most int) int {
	return max(least, min(most, bits-int(math.Round(math.Log2(factor)))))
}
