package trace

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/uplink-rpc/uplink/schema"
)

// formatter prints frames so that they are read back as the same integers.
type formatter struct {
	schema *schema.Schema
	digits []int // after the point, of every field
	values []float64
	nudged [4]float64
	again  *schema.Frame // what the printed text reads as
}

func newFormatter(s *schema.Schema) formatter {
	m := formatter{schema: s, again: s.NewFrame()}
	fields := s.Fields()
	for i := range fields {
		m.digits = append(m.digits, digits(step(&fields[i])))
	}
	return m
}

// step is the smallest difference of two values of the field; 0 for what is printed whole.
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

// exactDigits stands for as many digits as tell a number from every other.
const exactDigits = -1

// digits is how many digits after the point round a value by less than a thousandth of a step: what the recorded
// value is off is the quantizer's error, not the printer's.
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

// append appends the cells of f, each with a comma behind it.
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

// appendDirection appends a quaternion or unit vector. Unlike other numbers one may stand so near a border that its
// rounded text reads as its neighbor: then more digits are tried, and values further inside.
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
	return appendNumbers(row, v, exactDigits) // no value is quantized to these integers
}

// reads says whether the values, printed with n digits, are read as those of field number i of f.
func (m *formatter) reads(f *schema.Frame, i int, values []float64, n int) bool {
	var rounded [4]float64
	var text [32]byte
	for k, v := range values {
		rounded[k], _ = strconv.ParseFloat(string(appendNumber(text[:0], v, n)), 64)
	}
	m.again.CopyFrom(f)
	return m.schema.QuantizeField(m.again, i, rounded[:len(values)]) == nil && m.again.Equal(f)
}

// inside gives a rotation whose three smaller components are nearer to zero by the given amount. It says false where
// there is none.
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

// appendNumber appends v with n digits after the point, or fewer where the last ones are zeros.
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
