// Package trace records play in a file for the tool uplink, which measures codecs and tunes schemas
// with it: the frames of an RPC as rows of a CSV file, and a schema file that describes which
// columns form which fields.
//
// A trace is a CSV file, plain (.csv) or compressed (.csv.gz), with a header row and one row per
// frame. Its numbers are not quantized. The schema file NAME.schema.json in the same directory
// names the columns of each field. Other columns are ignored.
//
//	{"rpc": "ServerMove", "rate_hz": 60, "fields": [
//	  {"name": "Location", "kind": "vec3", "columns": ["pos_x_u", "pos_y_u", "pos_z_u"], "resolution": 0.03125},
//	  {"name": "Buttons",  "kind": "bits", "columns": ["buttons"], "width": 32}]}
package trace

import (
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Writer records frames as rows of a trace. Rows are buffered until Flush. After the first error
// every call returns it. A Writer is not safe for concurrent use.
type Writer struct{ w *trace.Writer }

// Create creates a trace file, compressed if its name ends in .gz. Rows start with the extra
// columns, which the caller provides, followed by the columns of the schema. The caller must close
// the Writer. [WriteSchema] writes the schema file.
//
// A trace contains players' input, so the file has mode 0600. If the path exists, the error wraps
// fs.ErrExist. Symbolic links are not followed.
func Create(path string, s *schema.Schema, extra ...string) (*Writer, error) {
	w, err := trace.Create(path, s, extra...)
	if err != nil {
		return nil, err
	}
	return &Writer{w}, nil
}

// Write appends the row of a frame. extra has a text for each extra column.
func (w *Writer) Write(f *schema.Frame, extra ...string) error { return w.w.Write(f, extra...) }

// Flush writes all rows so far to the file, from which they can then be read even if the process is
// killed. Each Flush of a compressed trace adds some bytes.
func (w *Writer) Flush() error { return w.w.Flush() }

// Close ends the file and returns the first error. Further calls have no effect.
func (w *Writer) Close() error { return w.w.Close() }

// WriteSchema creates a schema file with the names of all columns that a [Writer] of the schema
// writes. As with [Create], the file must not exist, and gets the mode 0600.
func WriteSchema(path string, s *schema.Schema) error { return trace.WriteSchema(path, s) }
