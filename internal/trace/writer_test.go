package trace_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

func TestWriterText(t *testing.T) {
	s := everyKind(t)
	f := s.NewFrame()
	for _, err := range []error{
		s.QuantizeField(f, 0, []float64{1.23, -0.04, 100}),
		s.QuantizeField(f, 1, []float64{1, 0.3}),
		s.QuantizeField(f, 2, []float64{999_999_999}),
		s.QuantizeField(f, 3, []float64{-180, 45, 12.3456}),
		s.QuantizeField(f, 4, []float64{0, 0, -0.7071068, 0.7071067}),
		s.QuantizeField(f, 5, []float64{0, 0, -1}),
		s.SetUint(f, 6, 0, 1<<64-1),
		s.SetInt(f, 7, 0, -64),
		s.SetInt(f, 7, 1, 63),
		s.SetInt(f, 8, 0, -1<<63),
		s.SetUint(f, 9, 0, 513),
		s.SetUint(f, 10, 0, 1),
		s.SetBytes(f, 11, []byte("abc")),
	} {
		must(t, err)
	}
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, "a.csv", s, "who, or what")
	must(t, err)
	must(t, errors.Join(w.Write(f, `"I", she said`), w.Write(s.NewFrame(), ""), w.Close()))
	want := `"who, or what",Location_x,Location_y,Location_z,Flat_x,Flat_y,Wide,View_0,View_1,View_2,` +
		`Rotation_x,Rotation_y,Rotation_z,Rotation_w,Aim_x,Aim_y,Aim_z,Big,Small_0,Small_1,Far,Buttons,On,ID_hex,Blob_hex
"""I"", she said",1.2,0,100,1,0.3333,999999999,-180,45,12.34314,0,0,0.7071068,-0.7071068,0,0,-1,18446744073709551615,-64,63,-9223372036854775808,513,1,616263,
,0,0,0,0,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,0,000000,
`
	if got := file.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWriterEmptyRow writes a frame whose row would be an empty line, which readers skip.
func TestWriterEmptyRow(t *testing.T) {
	most := 4.0
	s := newSchema(t, []schema.Field{{Name: "Blob", Kind: schema.KindBytes, Max: &most}})
	file := written(t, "a.csv", s, s.NewFrame())
	r, err := trace.NewReader(file, "a.csv", s)
	must(t, err)
	if err := r.Read(s.NewFrame()); err != nil {
		t.Errorf("%v, in %q", err, file.String())
	}
}

var errFull = errors.New("disk full")

// fullFile is a file on a disk with room bytes.
type fullFile struct {
	bytes.Buffer
	room  int
	sizes []int // after each write
}

func (f *fullFile) Write(b []byte) (int, error) {
	n := min(len(b), f.room-f.Len())
	f.Buffer.Write(b[:n])
	f.sizes = append(f.sizes, f.Len())
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func (f *fullFile) Truncate(size int64) error {
	f.Buffer.Truncate(int(size))
	return nil
}

func TestWriterStickyError(t *testing.T) {
	s := everyKind(t)
	for _, name := range []string{"a.csv", "a.csv.gz"} {
		w, err := trace.NewWriter(&fullFile{room: 100}, name, s)
		must(t, err)
		f := s.NewFrame()
		for range 1000 {
			err = w.Write(f)
		}
		if name == "a.csv" && !errors.Is(errors.Join(err, w.Flush()), errFull) {
			t.Errorf("%s: the error did not stay: %v, %v", name, err, w.Flush())
		}
		if err := w.Close(); !errors.Is(err, errFull) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: closed again: %v", name, err)
		}
		if err := w.Write(f); err == nil {
			t.Errorf("%s: written after Close", name)
		}
	}
}

// TestWriterWholeRows checks that each write ends with a row, and that a failed write on a full
// disk is undone, so that no partial row remains.
func TestWriterWholeRows(t *testing.T) {
	s := everyKind(t)
	file := &fullFile{room: 1 << 20}
	w, err := trace.NewWriter(trace.WholeFile(file), "a.csv", s)
	must(t, err)
	f := s.NewFrame()
	for n := 0; err == nil; n++ {
		err = errors.Join(s.SetUint(f, 6, 0, 1<<(n%64)), w.Write(f))
	}
	if !errors.Is(err, errFull) || len(file.sizes) < 10 || file.sizes[len(file.sizes)-1] != file.room || file.Len() == file.room {
		t.Fatalf("%v; %d bytes after writes to %v", err, file.Len(), file.sizes)
	}
	for _, size := range file.sizes[:len(file.sizes)-1] {
		if file.Bytes()[size-1] != '\n' {
			t.Fatalf("a write ends with %q", file.Bytes()[size-10:size])
		}
	}
	r, err := trace.NewReader(&file.Buffer, "a.csv", s)
	for err == nil {
		err = r.Read(f)
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestCreateExisting creates a trace and its schema file over existing files and links.
func TestCreateExisting(t *testing.T) {
	s := everyKind(t)
	for what, create := range map[string]func(path string) error{
		"trace": func(path string) error {
			w, err := trace.Create(path, s)
			if err != nil {
				return err
			}
			return w.Close()
		},
		"schema file": func(path string) error { return trace.WriteSchema(path, s) },
	} {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
		must(t, create(path))
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s: %v, mode %v", what, err, info.Mode())
		}
		if err := create(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", what, err)
		}
		if runtime.GOOS == "windows" {
			continue // where links need privileges
		}
		must(t, os.Symlink(filepath.Join(dir, "target"), link))
		if err := create(link); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWriterMisuse(t *testing.T) {
	s := everyKind(t)
	w, err := trace.NewWriter(&bytes.Buffer{}, "a.csv", s, "player")
	must(t, err)
	wantError(t, w.Write(s.NewFrame()), `trace: a.csv: 0 extra cells, want 1: "player"`)
	if err := w.Write(s.NewFrame(), "7"); err != nil {
		t.Errorf("after a wrong call: %v", err)
	}
	_, err = trace.NewWriter(&bytes.Buffer{}, "a.csv", s, "Wide")
	wantError(t, err, `trace: a.csv: column "Wide" is there twice; a record of Move needs a name of its own for each`)
	_, err = trace.Create(filepath.Join(t.TempDir(), "none", "a.csv"), s)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestWriterAllocations(t *testing.T) {
	s := newSchema(t, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1},
		{Name: "View", Kind: schema.KindAngle, Count: 3},
		{Name: "Buttons", Kind: schema.KindBits, Width: 16},
	})
	w, err := trace.NewWriter(io.Discard, "a.csv", s)
	must(t, err)
	f := s.NewFrame()
	if n := allocs.PerRun(100, func() { err = w.Write(f) }); n != 0 || err != nil {
		t.Errorf("%v allocations a row, %v", n, err)
	}
}
