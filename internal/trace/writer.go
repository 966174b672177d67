package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Writer records frames as rows of a trace. Rows are buffered until Flush. After the first error
// every call returns it. A Writer is not safe for concurrent use.
type Writer struct {
	name   string
	out    *bufio.Writer
	gzip   *gzip.Writer // nil if the trace is not compressed
	file   io.Closer    // nil if Create did not open it
	format formatter
	extra  []string
	row    []byte
	err    error
}

// Create creates a trace file, compressed if its name ends in .gz. Rows start with the extra
// columns, which the caller provides, followed by the columns of the schema. The caller must close
// the Writer. [WriteSchema] writes the schema file.
//
// A trace contains players' input, so the file has mode 0600. If the path exists, the error wraps
// [fs.ErrExist]. Symbolic links are not followed.
func Create(path string, schema *schema.Schema, extra ...string) (*Writer, error) {
	f, err := privatefile.Create(path, false)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	w, err := NewWriter(&wholeFile{file: f}, path, schema, extra...)
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	w.file = f
	return w, nil
}

// wholeFile undoes incomplete writes: a truncated row would be read as another row.
type wholeFile struct {
	file interface {
		io.Writer
		Truncate(size int64) error
	}
	size int64
}

// Write implements io.Writer.
func (f *wholeFile) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if err != nil && n > 0 {
		return 0, errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return n, err
}

// NewWriter is [Create] for any destination, compressed if name ends in .gz. Errors contain name.
// Close does not close dst.
func NewWriter(dst io.Writer, name string, s *schema.Schema, extra ...string) (*Writer, error) {
	header := slices.Clone(extra)
	for i := range s.Fields() {
		header = append(header, Columns(&s.Fields()[i])...)
	}
	for i, c := range header {
		if slices.Contains(header[:i], c) {
			return nil, fmt.Errorf("trace: %s: column %q is there twice; a record of %s needs a name of its own for each", name, c, s.RPC())
		}
	}
	w := &Writer{name: name, format: newFormatter(s), extra: slices.Clone(extra)}
	if strings.HasSuffix(name, ".gz") {
		w.gzip = gzip.NewWriter(dst)
		dst = w.gzip
	}
	w.out = bufio.NewWriterSize(dst, 64<<10)
	for _, c := range header {
		w.row = appendText(w.row, c)
	}
	return w, w.endRow()
}

// Write appends the row of a frame. extra has a text for each extra column.
func (w *Writer) Write(f *schema.Frame, extra ...string) error {
	if w.err != nil {
		return w.err
	}
	if len(extra) != len(w.extra) {
		return fmt.Errorf("trace: %s: %d extra cells, want %d: %s", w.name, len(extra), len(w.extra), list(w.extra))
	}
	for _, text := range extra {
		w.row = appendText(w.row, text)
	}
	w.row = w.format.append(w.row, f)
	return w.endRow()
}

// endRow writes the cells in row, each of which ends in a comma.
func (w *Writer) endRow() error {
	row := w.row[:len(w.row)-1]
	if len(row) == 0 {
		row = append(row, `""`...) // readers skip empty lines
	}
	row = append(row, '\n')
	w.row = row[:0]
	if len(row) > w.out.Available() { // writes end with a row, so that a truncated file has no partial row
		if err := w.out.Flush(); err != nil {
			return w.keep(err)
		}
	}
	_, err := w.out.Write(row)
	return w.keep(err)
}

func (w *Writer) keep(err error) error {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("trace: %s: %w", w.name, err)
	}
	return w.err
}

// Flush writes all rows so far to the file, from which they can then be read even if the process is
// killed. Each Flush of a compressed trace adds some bytes.
func (w *Writer) Flush() error {
	if err := w.keep(w.out.Flush()); err != nil || w.gzip == nil {
		return err
	}
	return w.keep(w.gzip.Flush())
}

var errClosed = errors.New("trace: the writer is closed")

// Close ends the file and returns the first error. Further calls have no effect.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	_ = w.keep(w.out.Flush()) // w.err has it
	if w.gzip != nil {
		_ = w.keep(w.gzip.Close())
	}
	if w.file != nil {
		_ = w.keep(w.file.Close())
	}
	err := w.err
	w.err = errClosed
	return err
}

// appendText appends a cell and a comma, with quotes if needed.
func appendText(row []byte, text string) []byte {
	if strings.ContainsAny(text, ",\"\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return append(append(row, text...), ',')
}

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
