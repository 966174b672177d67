package rpcdelta

import (
	"fmt"
	"math"
	"strconv"
)

// RangeError says that a value cannot be quantized: it is not a number, or
// outside what its field may hold. Nothing was sent.
type RangeError struct {
	RPC   string
	Field string
	Value any    // as given
	Limit string // what the field takes
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("rpcdelta: %s: field %q: value %v, want %s", e.RPC, e.Field, e.Value, e.Limit)
}

func (s *Schema) rangeError(f *Field, value any, limit string) error {
	return &RangeError{RPC: s.rpc, Field: f.Name, Value: value, Limit: limit}
}

// round is the rule by which every value becomes an integer. The conversion
// keeps processors from fusing the product with the sum.
func round(v, scale float64) float64 {
	return math.Floor(float64(v*scale) + 0.5)
}

// QuantizeField writes the values of field number i into f, as many as
// [Field.Values] says; quaternions are normalized. A value that is not a number
// or out of range is a [*RangeError], and f is then undefined. It does not
// allocate but for the error. For byte strings use [Schema.SetBytes]; for
// integers wider than 53 bits [Schema.SetUint].
func (s *Schema) QuantizeField(f *Frame, i int, values []float64) error {
	p := &s.plans[i]
	if len(values) != p.field.Values() || p.class == classBlob {
		return fmt.Errorf("rpcdelta: %s: field %q: %d values, want %d", s.rpc, p.field.Name, len(values), p.field.Values())
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return s.rangeError(p.field, v, "a finite number")
		}
	}
	dst := f.Ints[p.at : p.at+p.n]
	switch {
	case p.class == classQuat:
		if !quantizeQuat(dst, values, p.hi) {
			return s.rangeError(p.field, fmt.Sprintf("(%g, %g, %g, %g)", values[0], values[1], values[2], values[3]), "a quaternion of a length above 0")
		}
	case p.field.Kind == KindUnitVec:
		if !quantizeUnitVec(dst, values, p.hi) {
			return s.rangeError(p.field, fmt.Sprintf("(%g, %g, %g)", values[0], values[1], values[2]), "a direction of a length above 0")
		}
	case p.class == classGroup:
		return s.quantizeGroup(p, dst, values)
	case p.class == classAngle:
		return s.quantizeAngles(p, dst, values)
	default:
		return s.quantizeBinary(p, f, values)
	}
	return nil
}

func (s *Schema) quantizeGroup(p *plan, dst []int32, values []float64) error {
	for k, v := range values {
		x := round(v, p.scale)
		if !(x >= float64(p.lo) && x <= float64(p.hi)) {
			return s.rangeError(p.field, v, p.valueLimit())
		}
		dst[k] = int32(x)
	}
	return nil
}

func (s *Schema) quantizeAngles(p *plan, dst []int32, values []float64) error {
	for k, v := range values {
		x := round(v, p.scale)
		if !(x >= -(1<<52) && x <= 1<<52) {
			return s.rangeError(p.field, v, "degrees that a float64 can still tell apart")
		}
		dst[k] = int32(int64(x) & int64(p.hi))
	}
	return nil
}

func (s *Schema) quantizeBinary(p *plan, f *Frame, values []float64) error {
	for k, v := range values {
		if v != math.Trunc(v) {
			return s.rangeError(p.field, v, "a whole number")
		}
		lo, hi := p.valueRange()
		if !(v >= lo && v <= hi) {
			return s.rangeError(p.field, v, fmt.Sprintf("%.0f to %.0f", lo, hi))
		}
		if p.signed {
			s.setInt(p, f, k, int64(v))
		} else {
			s.setUint(p, f, k, uint64(v))
		}
	}
	return nil
}

// valueRange is the range of one whole value of a binary field. The upper end
// is rounded down where a float64 cannot hold it.
func (p *plan) valueRange() (lo, hi float64) {
	bits := int(p.width)
	if p.signed {
		bits--
		lo = -math.Ldexp(1, bits)
	}
	if bits > 53 {
		return lo, math.Nextafter(math.Ldexp(1, bits), 0)
	}
	return lo, math.Ldexp(1, bits) - 1
}

func (p *plan) valueLimit() string {
	number := func(v int32) string { return strconv.FormatFloat(float64(v)/p.scale, 'f', -1, 64) }
	return number(p.lo) + " to " + number(p.hi)
}

// SetUint writes value k of field number i, a uint, bits or bool. A value wider
// than the field is a [*RangeError].
func (s *Schema) SetUint(f *Frame, i, k int, v uint64) error {
	p := &s.plans[i]
	if p.width < 64 && v>>p.width != 0 {
		return s.rangeError(p.field, v, fmt.Sprintf("0 to %d", uint64(1)<<p.width-1))
	}
	s.setUint(p, f, k, v)
	return nil
}

// SetInt writes value k of field number i, an int. A value wider than the field
// is a [*RangeError].
func (s *Schema) SetInt(f *Frame, i, k int, v int64) error {
	p := &s.plans[i]
	if top := v >> (p.width - 1); top != 0 && top != -1 {
		return s.rangeError(p.field, v, fmt.Sprintf("%d to %d", int64(-1)<<(p.width-1), int64(uint64(1)<<(p.width-1)-1)))
	}
	s.setInt(p, f, k, v)
	return nil
}

func (s *Schema) setUint(p *plan, f *Frame, k int, v uint64) {
	if p.width > 32 {
		f.Ints[p.at+2*k], f.Ints[p.at+2*k+1] = int32(uint32(v)), int32(uint32(v>>32))
		return
	}
	f.Ints[p.at+k] = int32(uint32(v))
}

func (s *Schema) setInt(p *plan, f *Frame, k int, v int64) { s.setUint(p, f, k, uint64(v)) }

// Uint reads value k of field number i, a uint, bits or bool.
func (s *Schema) Uint(f *Frame, i, k int) uint64 {
	p := &s.plans[i]
	if p.width > 32 {
		return uint64(uint32(f.Ints[p.at+2*k])) | uint64(uint32(f.Ints[p.at+2*k+1]))<<32
	}
	return uint64(uint32(f.Ints[p.at+k]))
}

// Int reads value k of field number i, an int.
func (s *Schema) Int(f *Frame, i, k int) int64 {
	p := &s.plans[i]
	if p.width > 32 {
		return int64(uint32(f.Ints[p.at+2*k])) | int64(f.Ints[p.at+2*k+1])<<32
	}
	return int64(f.Ints[p.at+k])
}

// SetBytes copies b into field number i, a byte string. A length outside the
// field's is a [*RangeError].
func (s *Schema) SetBytes(f *Frame, i int, b []byte) error {
	p := &s.plans[i]
	if len(b) < p.minBytes || len(b) > p.maxBytes {
		return s.rangeError(p.field, fmt.Sprintf("of %d bytes", len(b)), p.bytesLimit())
	}
	f.Bytes[p.blob] = append(f.Bytes[p.blob][:0], b...)
	return nil
}

// BytesOf gives field number i, a byte string. The slice is the frame's own.
func (s *Schema) BytesOf(f *Frame, i int) []byte { return f.Bytes[s.plans[i].blob] }

// RestoreField appends the values of field number i to dst: each within half a
// resolution of what was quantized. Angles come as -180 up to, not including,
// 180 degrees; quaternions and directions have length 1.
func (s *Schema) RestoreField(dst []float64, f *Frame, i int) []float64 {
	p := &s.plans[i]
	src := f.Ints[p.at : p.at+p.n]
	switch {
	case p.class == classQuat:
		return appendQuat(dst, src, p.hi)
	case p.field.Kind == KindUnitVec:
		return appendUnitVec(dst, src, p.hi)
	case p.class == classGroup:
		for _, v := range src {
			dst = append(dst, p.restore(v))
		}
	case p.class == classAngle:
		for _, v := range src {
			dst = append(dst, p.degrees(v))
		}
	case p.class == classBinary:
		for k := range p.values() {
			if p.signed {
				dst = append(dst, float64(s.Int(f, i, k)))
			} else {
				dst = append(dst, float64(s.Uint(f, i, k)))
			}
		}
	}
	return dst
}

// restore divides by the scale where that is exact for steps like 0.1: the
// quotient is the float64 nearest to the decimal number.
func (p *plan) restore(v int32) float64 {
	if steps := math.Round(p.scale); steps >= 1 && math.Abs(p.scale-steps) < 1e-9*steps {
		return float64(v) / steps
	}
	return float64(v) * p.field.Resolution
}

func (p *plan) degrees(v int32) float64 {
	if v > p.hi/2 {
		v -= p.hi + 1
	}
	return float64(v) * 360 / float64(int(p.hi)+1)
}
