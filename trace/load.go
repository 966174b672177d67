package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/uplink-rpc/uplink/schema"
)

// Trace is a recorded run of an RPC, quantized.
type Trace struct {
	// Name is the file's name without its folder and endings.
	Name   string
	Schema *schema.Schema
	// Frames are the rows in order, at least one.
	Frames []schema.Frame
}

// At gives frame n of the trace played in a loop; n is not negative.
func (t *Trace) At(n int) *schema.Frame { return &t.Frames[n%len(t.Frames)] }

// Load reads a whole trace. A nil schema means that of the schema file beside it. A trace without rows is an error.
// Of a file that is cut off or damaged after some rows there are these, beside the error.
func Load(path string, s *schema.Schema) (*Trace, error) {
	if s == nil {
		var err error
		if s, err = LoadSchema(SchemaPath(path)); err != nil {
			return nil, err
		}
	}
	r, err := Open(path, s)
	if err != nil {
		return nil, err
	}
	return r.load()
}

// LoadFS is [Load] for files of fsys.
func LoadFS(fsys fs.FS, path string, s *schema.Schema) (*Trace, error) {
	if s == nil {
		var err error
		if s, err = LoadSchemaFS(fsys, SchemaPath(path)); err != nil {
			return nil, err
		}
	}
	r, err := OpenFS(fsys, path, s)
	if err != nil {
		return nil, err
	}
	return r.load()
}

// load reads what is left and closes the file.
func (r *Reader) load() (*Trace, error) {
	frames, err := r.readAll()
	err = errors.Join(err, r.Close())
	if len(frames) == 0 {
		return nil, err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(r.name), ".gz"), ".csv")
	return &Trace{Name: name, Schema: r.schema, Frames: frames}, err
}

// readAll gives the rows that could be read, and why it ended but for the file's end.
func (r *Reader) readAll() (frames []schema.Frame, err error) {
	for {
		f := r.schema.NewFrame()
		switch err := r.Read(f); {
		case errors.Is(err, io.EOF) && len(frames) == 0:
			return nil, fmt.Errorf("trace: %s: no rows below the header", r.name)
		case errors.Is(err, io.EOF):
			return frames, nil
		case err != nil:
			return frames, err
		}
		frames = append(frames, *f)
	}
}
