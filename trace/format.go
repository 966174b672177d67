package trace

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/uplink-rpc/uplink/schema"
)

// formatter formats frames as text that a Reader quantizes to the same components.
type formatter struct {
	schema *schema.Schema
	digits []int // after the decimal point, for each field
	values []float64
	nudged [4]float64
	again  *schema.Frame // scratch for the frame that a text is quantized to
}

func newFormatter(s *schema.Schema) formatter {
	m := formatter{schema: s, again: s.NewFrame()}
	fields := s.Fields()
	for i := range fields {
		m.digits = append(m.digits, digits(step(&fields[i])))
	}
	return m
}

// step returns the size of a quantization step of the field, or 0 for integers and byte strings.
func step(f *schema.Field) float64 {
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		return f.Resolution
	case schema.KindAngle:
		return math.Ldexp(360, -f.Bits)
	case schema.KindQuat:
		return math.Sqrt2 / 2 / float64(int(1)<<(f.Bits-1)-1)
	case schema.KindUnitVec:
		return 1 / float64(int(1)<<(f.Bits-1)-1)
	default:
		return 0
	}
}

// exactDigits means as many digits as identify a float64.
const exactDigits = -1

// digits returns the number of digits after the decimal point that round a value by less than a
// thousandth of a step, so that the text adds next to nothing to the quantization error.
func digits(step float64) int {
	if step == 0 {
		return exactDigits
	}
	n := int(math.Ceil(-math.Log10(step * 2e-3)))
	if n > 15 {
		return exactDigits
	}
	return max(n, 0)
}

// append appends the cells of f, each followed by a comma.
func (m *formatter) append(row []byte, f *schema.Frame) []byte {
	fields := m.schema.Fields()
	for i := range fields {
		field := &fields[i]
		switch {
		case field.IsBytes():
			row = append(hex.AppendEncode(row, m.schema.BytesOf(f, i)), ',')
		case field.Kind == schema.KindInt:
			for k := range field.Values() {
				row = append(strconv.AppendInt(row, m.schema.Int(f, i, k), 10), ',')
			}
		case isInteger(field.Kind):
			for k := range field.Values() {
				row = append(strconv.AppendUint(row, m.schema.Uint(f, i, k), 10), ',')
			}
		default:
			m.values = m.schema.RestoreField(m.values[:0], f, i)
			if field.Kind == schema.KindQuat || field.Kind == schema.KindUnitVec {
				row = m.appendDirection(row, f, i)
			} else {
				row = appendNumbers(row, m.values, m.digits[i])
			}
		}
	}
	return row
}

// appendDirection appends a quaternion or unit vector. Its rounded text may quantize to a neighbor.
// If so, appendDirection tries more digits, and then values further inside the quantization step.
func (m *formatter) appendDirection(row []byte, f *schema.Frame, i int) []byte {
	v := m.values
	for _, n := range []int{m.digits[i], exactDigits} {
		if m.reads(f, i, v, n) {
			return appendNumbers(row, v, n)
		}
	}
	if len(v) == 4 {
		for _, part := range []float64{0.1, 0.3, 0.45, 0.49, 0.499, 0.4999, 0.499999} {
			for largest := range v {
				if q, ok := m.inside(v, largest, part*step(&m.schema.Fields()[i])); ok && m.reads(f, i, q, exactDigits) {
					return appendNumbers(row, q, exactDigits)
				}
			}
		}
	}
	return appendNumbers(row, v, exactDigits) // no value is quantized to these components
}

// reads reports whether the values, formatted with n digits, are quantized to field i of f.
func (m *formatter) reads(f *schema.Frame, i int, values []float64, n int) bool {
	var rounded [4]float64
	var text [32]byte
	for k, v := range values {
		rounded[k], _ = strconv.ParseFloat(string(appendNumber(text[:0], v, n)), 64)
	}
	m.again.CopyFrom(f)
	return m.schema.QuantizeField(m.again, i, rounded[:len(values)]) == nil && m.again.Equal(f)
}

// inside returns a rotation whose three smaller components are closer to zero by the given amount.
// It reports false if there is none.
func (m *formatter) inside(v []float64, largest int, amount float64) ([]float64, bool) {
	q, rest := m.nudged[:], 1.0
	for k, x := range v {
		if k != largest {
			q[k] = math.Copysign(max(math.Abs(x)-amount, 0), x)
			rest -= float64(q[k] * q[k])
		}
	}
	q[largest] = math.Sqrt(max(rest, 0))
	return q, rest > 0
}

func appendNumbers(row []byte, values []float64, n int) []byte {
	for _, v := range values {
		row = append(appendNumber(row, v, n), ',')
	}
	return row
}

// appendNumber appends v with n digits after the decimal point, without trailing zeros.
func appendNumber(row []byte, v float64, n int) []byte {
	at := len(row)
	row = strconv.AppendFloat(row, v, 'f', n, 64)
	if slices.Contains(row[at:], '.') {
		for row[len(row)-1] == '0' {
			row = row[:len(row)-1]
		}
		if row[len(row)-1] == '.' {
			row = row[:len(row)-1]
		}
	}
	return row
}
