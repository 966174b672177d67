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
)

// Writer records frames as the rows of a trace. Rows are buffered; the first error stays, and every later call returns
// it. Not safe for concurrent use.
type Writer struct {
	name   string
	out    *bufio.Writer
	under  []io.Closer // what Close closes, in that order
	format formatter
	extra  []string
	row    []byte
	err    error
}

// Create creates or overwrites a trace file, compressed if its name ends in .gz. The row of a frame starts with the
// extra columns, which are the caller's to fill, then come those of the schema, as [Columns] names them. Close it. See
// [WriteSchema] for the file beside it.
func Create(path string, s *schema.Schema, extra ...string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	w, err := newWriter(f, path, s, extra)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.under = append(w.under, f)
	return w, nil
}

// NewWriter is [Create] for any destination, compressed if name ends in .gz. Errors are about name. Close does not
// close dst.
func NewWriter(dst io.Writer, name string, s *schema.Schema, extra ...string) (*Writer, error) {
	return newWriter(dst, name, s, extra)
}

func newWriter(dst io.Writer, name string, s *schema.Schema, extra []string) (*Writer, error) {
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
		z := gzip.NewWriter(dst)
		w.under = append(w.under, z)
		dst = z
	}
	w.out = bufio.NewWriter(dst)
	for _, c := range header {
		w.row = appendText(w.row, c)
	}
	return w, w.endRow()
}

// Write appends the row of a frame of the schema, which starts with the texts of the extra columns, as many as Create
// was given.
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

// endRow writes the collected cells, each of which ends in a comma.
func (w *Writer) endRow() error {
	row := w.row[:len(w.row)-1]
	if len(row) == 0 {
		row = append(row, `""`...) // an empty line would be no row
	}
	_, err := w.out.Write(append(row, '\n'))
	w.row = row[:0]
	return w.keep(err)
}

// keep makes the first error stay.
func (w *Writer) keep(err error) error {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("trace: %s: %w", w.name, err)
	}
	return w.err
}

// Flush writes what is buffered so far to the file. What a compressor still holds comes with Close.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	return w.keep(w.out.Flush())
}

// errClosed stays behind after Close.
var errClosed = errors.New("trace: the writer is closed")

// Close ends the file and gives the first error there was. Closing again does nothing.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	err := w.Flush()
	for _, c := range w.under {
		err = w.keep(c.Close())
	}
	w.err = errClosed
	return err
}

// appendText appends a cell and its comma, quoted where that is needed.
func appendText(row []byte, text string) []byte {
	if strings.ContainsAny(text, ",\"\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return append(append(row, text...), ',')
}
