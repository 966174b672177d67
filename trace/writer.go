package trace

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/internal/private"
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
	f, err := private.Create(path, false)
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

// wholeFile is a file that undoes incomplete writes: a row that is truncated by a full disk would
// be read as another row.
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

// keep keeps the first error.
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

// errClosed is the error of a closed Writer.
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
