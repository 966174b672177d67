package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/uplink-rpc/uplink/schema"
)

// Trace is a recorded run of an RPC, quantized.
type Trace struct {
	// Name is the file name without directory and extensions.
	Name   string
	Schema *schema.Schema
	// Frames are the rows in order. There is at least one.
	Frames []schema.Frame
}

// At returns frame n of the trace, repeated in a loop. n must not be negative.
func (t *Trace) At(n int) *schema.Frame { return &t.Frames[n%len(t.Frames)] }

// Load reads a whole trace. If s is nil, Load reads the schema file at [SchemaPath]. A trace
// without rows is an error. If the file is truncated, damaged or exceeds a limit, Load returns the
// rows before and the error.
//
// For a file of up to 1 GiB, decompressed, Load takes less than 64 MiB plus 16 bytes for each
// value, which is a number or a byte string. Frames with fewer than six values or with long byte
// strings take more than 16 bytes per value; Load stops when they exceed that by 24 MiB. A [Reader]
// has no such limit.
func Load(path string, s *schema.Schema) (*Trace, error) { return load(openOS, path, s) }

// LoadFS is [Load] for files of fsys.
func LoadFS(fsys fs.FS, path string, s *schema.Schema) (*Trace, error) {
	return load(openFS(fsys), path, s)
}

func load(open opener, path string, s *schema.Schema) (*Trace, error) {
	if s == nil {
		var err error
		if s, err = loadSchema(open, SchemaPath(path)); err != nil {
			return nil, err
		}
	}
	r, err := openReader(open, path, s)
	if err != nil {
		return nil, err
	}
	return r.load()
}

// opener opens a file of a file system.
type opener func(path string) (io.ReadCloser, error)

func openOS(path string) (io.ReadCloser, error) { return os.Open(path) }

func openFS(fsys fs.FS) opener {
	return func(path string) (io.ReadCloser, error) { return fsys.Open(path) }
}

// load reads the remaining rows and closes the file.
func (r *Reader) load() (*Trace, error) {
	frames, err := r.readAll()
	err = errors.Join(err, r.Close())
	if len(frames) == 0 {
		return nil, err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(r.name), ".gz"), ".csv")
	return &Trace{Name: name, Schema: r.schema, Frames: frames}, err
}

// readAll returns the rows before the first error, and the error unless it is the end of the file.
func (r *Reader) readAll() ([]schema.Frame, error) {
	frames := newCollector(r.schema)
	f := r.schema.NewFrame()
	for {
		switch err := r.Read(f); {
		case errors.Is(err, io.EOF) && frames.n == 0:
			return nil, fmt.Errorf("trace: %s: no rows below the header", r.name)
		case errors.Is(err, io.EOF):
			return frames.frames(), nil
		case err != nil:
			return frames.frames(), err
		}
		if !frames.add(f) {
			return frames.frames(), fmt.Errorf("trace: %s: row %d: the frames take %d MiB more than 16 bytes a value, which is the limit; split the trace",
				r.name, r.row, maxExcess>>20)
		}
	}
}
