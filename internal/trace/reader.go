package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// MaxRow is the maximum size of a row in bytes, decompressed and including empty lines before it.
const MaxRow = 256 << 10

// Reader reads the frames of a trace row by row. Its input may be hostile: rows are limited to
// [MaxRow], and the memory to 48 MiB. It is not safe for concurrent use.
type Reader struct {
	name   string
	schema *schema.Schema
	csv    *csv.Reader
	in     *rowLimiter // input of csv
	file   io.Closer

	header []string
	fields []cells
	row    int // data rows read
	record []string
	bytes  []byte
}

// cells contains the positions of a field in a row.
type cells struct {
	field   *schema.Field
	columns []string
	at      []int     // indexes into the row
	values  []float64 // values of the current row, not quantized; none for byte strings
}

// Open opens a trace with the given schema, compressed if its name ends in .gz. The caller must
// close it. If the header lacks a column, the error names it.
func Open(path string, s *schema.Schema) (*Reader, error) { return OpenFS(osFS{}, path, s) }

// OpenFS is [Open] for a file of fsys.
func OpenFS(fsys fs.FS, path string, s *schema.Schema) (*Reader, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	r, err := NewReader(f, path, s)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// NewReader returns a reader of a trace with the given schema from src, compressed if name ends in
// .gz. Errors contain name.
func NewReader(src io.Reader, name string, s *schema.Schema) (*Reader, error) {
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, fmt.Errorf("trace: %s: %w: not a gzip file, which its name says it is", name, err)
		}
		src = z
	}
	in := &rowLimiter{src: skipByteOrderMark(src)}
	r := &Reader{name: name, schema: s, csv: csv.NewReader(in), in: in}
	r.csv.FieldsPerRecord = -1 // counted in Read, with a clearer error
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	r.csv.ReuseRecord = true
	return r, nil
}

// errLongRow reports a row that is longer than [MaxRow].
var errLongRow = fmt.Errorf("the row has more than %d bytes, which is the limit", MaxRow)

// rowLimiter returns an error when a row is too long.
type rowLimiter struct {
	src         io.Reader
	read, limit int64 // bytes read so far, and their maximum
	last        byte  // last byte read
}

// Read implements io.Reader.
func (l *rowLimiter) Read(b []byte) (int, error) {
	if l.read >= l.limit {
		return 0, errLongRow
	}
	n, err := l.src.Read(b[:min(int64(len(b)), l.limit-l.read)])
	if n > 0 {
		l.last = b[n-1]
	}
	l.read += int64(n)
	return n, err
}

// next reads the header or the next row.
func (r *Reader) next() ([]string, error) {
	r.in.limit = r.csv.InputOffset() + MaxRow
	return r.csv.Read()
}

// skipByteOrderMark skips the mark that spreadsheets write before UTF-8.
func skipByteOrderMark(src io.Reader) io.Reader {
	b := bufio.NewReader(src)
	const mark = "\ufeff"
	if head, err := b.Peek(len(mark)); err == nil && string(head) == mark {
		_, _ = b.Discard(len(mark)) // cannot fail after Peek
	}
	return b
}

func (r *Reader) readHeader() error {
	header, err := r.next()
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("trace: %s: empty; want a header row of column names", r.name)
	case err != nil:
		return fmt.Errorf("trace: %s: header: %w", r.name, r.explain(err))
	}
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	r.header = header
	fields := r.schema.Fields()
	r.fields = make([]cells, len(fields))
	for i := range fields {
		if r.fields[i], err = r.find(&fields[i]); err != nil {
			return fmt.Errorf("trace: %s: %w", r.name, err)
		}
	}
	return nil
}

// find looks up the columns of a field in the header.
func (r *Reader) find(f *schema.Field) (cells, error) {
	c := cells{field: f, columns: Columns(f)}
	for _, name := range c.columns {
		at := slices.Index(r.header, name)
		if at < 0 {
			return c, fmt.Errorf("no column %q, which field %q of %s wants; the header has %s", name, f.Name, r.schema.RPC(), list(r.header))
		}
		if slices.Contains(r.header[at+1:], name) {
			return c, fmt.Errorf("column %q, which field %q wants, is there twice", name, f.Name)
		}
		c.at = append(c.at, at)
	}
	if !f.IsBytes() {
		c.values = make([]float64, f.Values())
	}
	return c, nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Row returns the number of the last row that Read has read. The first row after the header is 1.
func (r *Reader) Row() int { return r.row }

// Text returns the text of any column in the last row. It reports false if the header lacks the
// column.
func (r *Reader) Text(column string) (string, bool) {
	i := slices.Index(r.header, column)
	if i < 0 || i >= len(r.record) {
		return "", false
	}
	return strings.TrimSpace(r.record[i]), true
}

// Floats returns the values of field i in the last row, not quantized. The slice is valid until the
// next Read, and empty for byte strings.
func (r *Reader) Floats(i int) []float64 { return r.fields[i].values }

// Read reads the next row into f, a frame of the schema. After the last row the error is [io.EOF].
// Other errors name the file, the row, the column and the problem, and leave f undefined. The error
// wraps a *[schema.RangeError] for a value outside its field's range, and [io.ErrUnexpectedEOF] for
// a truncated file.
func (r *Reader) Read(f *schema.Frame) error {
	record, err := r.next()
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return r.readError(err)
	}
	r.record = record
	r.row++
	if len(record) != len(r.header) {
		err := fmt.Errorf("%d cells, want %d as in the header", len(record), len(r.header))
		if len(record) < len(r.header) && r.csv.InputOffset() == r.in.read && r.in.last != '\n' {
			err = fmt.Errorf("%w: %w: the file ends within this row", err, io.ErrUnexpectedEOF)
		}
		return r.rowError(err)
	}
	for i := range r.fields {
		if err := r.parseField(f, i); err != nil {
			return r.rowError(err)
		}
	}
	return nil
}

func (r *Reader) rowError(err error) error {
	line, _ := r.csv.FieldPos(0)
	return fmt.Errorf("trace: %s: row %d (line %d): %w", r.name, r.row, line, err)
}

// readError returns the error for a row that could not be read.
func (r *Reader) readError(err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("trace: %s: row %d (line %d): %w at character %d", r.name, r.row+1, p.Line, p.Err, p.Column)
	}
	return fmt.Errorf("trace: %s: after row %d, byte %d of the text: %w", r.name, r.row, r.csv.InputOffset(), r.explain(err))
}

// explain adds the meaning of a decompressor's error.
func (r *Reader) explain(err error) error {
	switch {
	case !strings.HasSuffix(r.name, ".gz") || errors.Is(err, errLongRow):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the gzip file is cut off", err)
	}
	return fmt.Errorf("%w: the gzip file is damaged", err)
}

func clip(text string) string {
	const limit = 100 // bytes
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "..."
}

// list returns the first names, quoted.
func list(names []string) string {
	const limit = 30
	q := make([]string, 0, limit)
	for _, n := range names[:min(len(names), limit)] {
		q = append(q, fmt.Sprintf("%q", clip(n)))
	}
	if len(names) > limit {
		q = append(q, fmt.Sprintf("and %d more", len(names)-limit))
	}
	return strings.Join(q, ", ")
}

func (r *Reader) parseField(f *schema.Frame, i int) error {
	c := &r.fields[i]
	switch {
	case c.field.IsBytes():
		return r.parseBytes(f, i)
	case isInteger(c.field.Kind):
		return r.parseIntegers(f, i)
	}
	for k := range c.at {
		v, err := parseNumber(r.cell(c, k))
		if err != nil {
			return c.error(k, err)
		}
		c.values[k] = v
	}
	if err := r.schema.QuantizeField(f, i, c.values); err != nil {
		return c.rangeError(err)
	}
	return nil
}

func (r *Reader) cell(c *cells, k int) string { return strings.TrimSpace(r.record[c.at[k]]) }

func (c *cells) error(k int, err error) error { return fmt.Errorf("column %q: %w", c.columns[k], err) }

// rangeError names the column of the value out of range, or for a quaternion all columns.
func (c *cells) rangeError(err error) error {
	if e, ok := errors.AsType[*schema.RangeError](err); ok {
		if v, ok := e.Value.(float64); ok {
			same := func(x float64) bool { return x == v || math.IsNaN(x) && math.IsNaN(v) }
			if k := slices.IndexFunc(c.values, same); k >= 0 {
				return c.error(k, err)
			}
		}
	}
	return fmt.Errorf("columns %s: %w", list(c.columns), err)
}

func (r *Reader) parseBytes(f *schema.Frame, i int) error {
	c := &r.fields[i]
	text := r.cell(c, 0)
	var err error
	if r.bytes, err = hex.AppendDecode(r.bytes[:0], []byte(text)); err != nil {
		return c.error(0, fmt.Errorf("%w; want bytes as hexadecimal digits, two each", err))
	}
	if err := r.schema.SetBytes(f, i, r.bytes); err != nil {
		return c.error(0, err)
	}
	return nil
}

func isInteger(k schema.Kind) bool {
	c, _ := k.Class()
	return c == schema.ClassInteger
}

// parseIntegers parses integers of up to 64 bits exactly.
func (r *Reader) parseIntegers(f *schema.Frame, i int) error {
	c := &r.fields[i]
	unused := 64 - c.field.Width // bits
	for k := range c.at {
		text := r.cell(c, k)
		if c.field.Kind == schema.KindBool {
			if v, err := strconv.ParseBool(text); err == nil {
				text = "0"
				if v {
					text = "1"
				}
			}
		}
		var err error
		if c.field.Kind == schema.KindInt {
			var v int64
			lowest := int64(math.MinInt64) >> unused
			if v, err = parseInteger(r, c.field, text, strconv.ParseInt, lowest, -(lowest + 1)); err == nil {
				c.values[k], err = float64(v), r.schema.SetInt(f, i, k, v)
			}
		} else {
			var v uint64
			if v, err = parseInteger(r, c.field, text, strconv.ParseUint, 0, math.MaxUint64>>unused); err == nil {
				c.values[k], err = float64(v), r.schema.SetUint(f, i, k, v)
			}
		}
		if err != nil {
			return c.error(k, err)
		}
	}
	return nil
}

// parseInteger parses an integer, or a number such as 3.0 or 1e3 that is one and was not rounded.
func parseInteger[T int64 | uint64](
	r *Reader, f *schema.Field, text string, parse func(string, int, int) (T, error), lowest, highest T,
) (T, error) {
	if v, err := parse(text, 10, 64); err == nil {
		return v, nil
	}
	v, err := parseNumber(text)
	if err == nil && (v != math.Trunc(v) || math.Abs(v) > 1<<53 || v < 0 && lowest == 0) {
		limit := fmt.Sprintf("a whole number, %d to %d", lowest, highest)
		err = &schema.RangeError{RPC: r.schema.RPC(), Field: f.Name, Value: clip(text), Limit: limit}
	}
	return T(v), err
}

// parseNumber returns an infinity, which every field refuses, for a number that is too large.
func parseNumber(text string) (float64, error) {
	if text == "" {
		return 0, errors.New("empty, want a number")
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not a number", clip(text))
	}
	return v, nil
}
