package schema

import (
	"fmt"
	"math"
)

// RangeError reports a value that cannot be quantized because it is not a number or outside the
// range of its field.
type RangeError struct {
	RPC   string
	Field string
	Value any    // the value as passed
	Limit string // permitted values
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("schema: %s: field %q: value %v, want %s", e.RPC, e.Field, e.Value, e.Limit)
}

func (s *Schema) rangeError(f *Field, value any, limit string) error {
	return &RangeError{RPC: s.rpc, Field: f.Name, Value: value, Limit: limit}
}

// round returns v*scale rounded to the nearest integer, halves up. The conversion prevents a fused
// multiply-add, whose result would depend on the processor.
func round(v, scale float64) float64 {
	return math.Floor(float64(v*scale) + 0.5)
}

// QuantizeField quantizes the values of field i into f. The number of values must be
// [Field.Values]; quaternions and directions are normalized. If a value is not a number or out of
// range, the error is a [*RangeError], and the contents of field i of f are then undefined. It
// allocates only for the error. Use [Schema.SetBytes] for byte strings, [Schema.SetUint] and
// [Schema.SetInt] for integers wider than 53 bits.
func (s *Schema) QuantizeField(f *Frame, i int, values []float64) error {
	p := &s.layouts[i]
	if len(values) != p.fieldValues || p.Class == ClassBytes {
		return fmt.Errorf("schema: %s: field %q: %d values, want %d", s.rpc, p.Field.Name, len(values), p.fieldValues)
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return s.rangeError(p.Field, v, "a finite number")
		}
	}
	dst := f.Ints[p.At : p.At+p.N]
	switch {
	case p.Class == ClassQuat:
		if !quantizeQuat(dst, values, p.Hi) {
			return s.rangeError(p.Field, fmt.Sprintf("(%g, %g, %g, %g)", values[0], values[1], values[2], values[3]), "a quaternion of a length above 0")
		}
	case p.Field.Kind == KindUnitVec:
		if !quantizeUnitVec(dst, values, p.Hi) {
			return s.rangeError(p.Field, fmt.Sprintf("(%g, %g, %g)", values[0], values[1], values[2]), "a direction of a length above 0")
		}
	case p.Class == ClassNumber:
		return s.quantizeGroup(p, dst, values)
	case p.Class == ClassAngle:
		return s.quantizeAngles(p, dst, values)
	default:
		return s.quantizeBinary(p, f, values)
	}
	return nil
}

func (s *Schema) quantizeGroup(p *Layout, dst []int32, values []float64) error {
	for k, v := range values {
		x := round(v, p.Scale)
		if !(x >= float64(p.Lo) && x <= float64(p.Hi)) {
			return s.rangeError(p.Field, v, p.valueLimit())
		}
		dst[k] = int32(x)
	}
	return nil
}

func (s *Schema) quantizeAngles(p *Layout, dst []int32, values []float64) error {
	for k, v := range values {
		x := round(v, p.Scale)
		if !(x >= -(1<<52) && x <= 1<<52) {
			return s.rangeError(p.Field, v, "degrees that a float64 can still tell apart")
		}
		dst[k] = int32(int64(x) & int64(p.Hi))
	}
	return nil
}

func (s *Schema) quantizeBinary(p *Layout, f *Frame, values []float64) error {
	for k, v := range values {
		if v != math.Trunc(v) {
			return s.rangeError(p.Field, v, "a whole number")
		}
		lo, hi := p.valueRange()
		if !(v >= lo && v <= hi) {
			return s.rangeError(p.Field, v, fmt.Sprintf("%.0f to %.0f", lo, hi))
		}
		if p.Signed {
			p.setUint(f, k, uint64(int64(v)))
		} else {
			p.setUint(f, k, uint64(v))
		}
	}
	return nil
}

// SetUint sets value k of field i, a uint, bits or bool. A value wider than the field is a
// [*RangeError].
func (s *Schema) SetUint(f *Frame, i, k int, v uint64) error {
	p := &s.layouts[i]
	if p.Width < 64 && v>>p.Width != 0 {
		return s.rangeError(p.Field, v, fmt.Sprintf("0 to %d", uint64(1)<<p.Width-1))
	}
	p.setUint(f, k, v)
	return nil
}

// SetInt sets value k of field i, an int. A value wider than the field is a [*RangeError].
func (s *Schema) SetInt(f *Frame, i, k int, v int64) error {
	p := &s.layouts[i]
	if top := v >> (p.Width - 1); top != 0 && top != -1 {
		return s.rangeError(p.Field, v, fmt.Sprintf("%d to %d", int64(-1)<<(p.Width-1), int64(uint64(1)<<(p.Width-1)-1)))
	}
	p.setUint(f, k, uint64(v))
	return nil
}

// Uint returns value k of field i, a uint, bits or bool.
func (s *Schema) Uint(f *Frame, i, k int) uint64 {
	p := &s.layouts[i]
	if p.Width > 32 {
		return uint64(uint32(f.Ints[p.At+2*k])) | uint64(uint32(f.Ints[p.At+2*k+1]))<<32
	}
	return uint64(uint32(f.Ints[p.At+k]))
}

// Int returns value k of field i, an int.
func (s *Schema) Int(f *Frame, i, k int) int64 {
	p := &s.layouts[i]
	if p.Width > 32 {
		return int64(uint32(f.Ints[p.At+2*k])) | int64(f.Ints[p.At+2*k+1])<<32
	}
	return int64(f.Ints[p.At+k])
}

// SetBytes sets field i, a byte string, to a copy of b. A length that the field does not permit is
// a [*RangeError].
func (s *Schema) SetBytes(f *Frame, i int, b []byte) error {
	p := &s.layouts[i]
	if len(b) < p.MinBytes || len(b) > p.MaxBytes {
		return s.rangeError(p.Field, fmt.Sprintf("of %d bytes", len(b)), p.bytesLimit())
	}
	f.Bytes[p.Blob] = append(f.Bytes[p.Blob][:0], b...)
	return nil
}

// BytesOf returns field i, a byte string. The slice aliases the frame.
func (s *Schema) BytesOf(f *Frame, i int) []byte { return f.Bytes[s.layouts[i].Blob] }

// RestoreField appends the values of field i to dst and returns the extended slice. Each value
// differs from the value before quantization by at most half a resolution. Angles are at least -180
// and less than 180 degrees; quaternions and directions have length 1.
func (s *Schema) RestoreField(dst []float64, f *Frame, i int) []float64 {
	p := &s.layouts[i]
	src := f.Ints[p.At : p.At+p.N]
	switch {
	case p.Class == ClassQuat:
		return appendQuat(dst, src, p.Hi)
	case p.Field.Kind == KindUnitVec:
		return appendUnitVec(dst, src, p.Hi)
	case p.Class == ClassNumber:
		for _, v := range src {
			dst = append(dst, p.restore(v))
		}
	case p.Class == ClassAngle:
		for _, v := range src {
			dst = append(dst, p.degrees(v))
		}
	case p.Class == ClassInteger:
		for k := range p.Values() {
			if p.Signed {
				dst = append(dst, float64(s.Int(f, i, k)))
			} else {
				dst = append(dst, float64(s.Uint(f, i, k)))
			}
		}
	}
	return dst
}
