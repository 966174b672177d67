package trace_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/trace"
)

// bomb is a large file that is generated while it is read: a head, then the same part repeatedly.
type bomb struct {
	rest      []byte // of the head or part
	part      []byte
	left      int64
	onRead    func()
	untilNext int64
}

const sampleEvery = 1 << 20 // bytes

func (b *bomb) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	if b.untilNext -= int64(len(p)); b.untilNext <= 0 {
		b.untilNext = sampleEvery
		b.onRead()
	}
	n := 0
	for n < len(p) {
		if len(b.rest) == 0 {
			b.rest = b.part
		}
		k := copy(p[n:], b.rest)
		b.rest = b.rest[k:]
		n += k
	}
	b.left -= int64(n)
	return n, nil
}

// bombFS is a file system with one file.
type bombFS struct{ *bomb }

func (f bombFS) Open(string) (fs.File, error) { return bombFile(f), nil }

type bombFile struct{ *bomb }

func (bombFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
func (bombFile) Close() error               { return nil }

// peak runs f and returns the maximum growth of the heap in bytes, including garbage. f calls
// sample.
func peak(f func(sample func())) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapAlloc), int64(0)
	sample := func() {
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapAlloc)-before)
	}
	f(sample)
	sample()
	return most
}

// TestBombs loads files of 1 GiB that compress well. Load stays within the documented memory, and
// returns the rows that fit or names the limit.
func TestBombs(t *testing.T) {
	const whole = 1 << 30
	part := int64(64 << 20) // of a file that is read to its end
	if testing.Short() {
		part = 16 << 20
	}
	flag := newSchema(t, []schema.Field{{Name: "On", Kind: schema.KindBool, Columns: []string{"on"}}})
	wide := newSchema(t, []schema.Field{{Name: "Many", Kind: schema.KindUint, Width: 8, Count: 64}})
	blob := newSchema(t, []schema.Field{{Name: "Blob", Kind: schema.KindFixed, Size: 1000, Columns: []string{"blob"}}})
	wideHeader := strings.Join(trace.Columns(&wide.Fields()[0]), ",")
	tooLong, tooMany := "262144 bytes, which is the limit", "24 MiB more than 16 bytes a value, which is the limit"
	for _, c := range []struct {
		name       string
		schema     *schema.Schema
		head, part string
		size       int64
		want       string // in the error
	}{
		{"one quoted cell", flag, "on\n\"", "aaaaaaaa", whole, tooLong},
		{"quoted lines", flag, "on\n\"", "a\n", whole, tooLong},
		{"one row of cells", flag, "on\n", ",", whole, tooLong},
		{"one row of quotes", flag, "on\n", `"",`, whole, tooLong},
		{"one cell", flag, "on\n", "1", whole, tooLong},
		{"one header", flag, "on", ",", whole, tooLong},
		{"empty lines", flag, "on\n", "\n", whole, tooLong},
		{"rows of one value", flag, "on\n", "1\n", whole, tooMany},
		{"rows of empty cells", flag, "on,x\n", "1,\n", whole, tooMany},
		{"rows of byte strings", blob, "blob\n", strings.Repeat("ab", 1000) + "\n", whole, tooMany},
		{"rows of many values", wide, wideHeader + "\n", strings.Repeat("0,", 63) + "0\n", part, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got *trace.Trace
			var err error
			most := peak(func(sample func()) {
				got, err = trace.LoadFS(bombFS{&bomb{rest: []byte(c.head), part: []byte(c.part), left: c.size, onRead: sample}}, "a.csv", c.schema)
			})
			if c.want == "" && err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			values := 0
			if got != nil {
				values = len(got.Frames) * c.schema.Fields()[0].Values()
			}
			t.Logf("%d values, %.1f MiB, %v", values, float64(most)/(1<<20), err)
			if limit := int64(64<<20 + 16*values); most > limit {
				t.Errorf("%d bytes for %d values, want at most %d", most, values, limit)
			}
		})
	}
}

// TestBombGzip loads a compressed file.
func TestBombGzip(t *testing.T) {
	pad := 9000.0
	s := newSchema(t, []schema.Field{{Name: "Blob", Kind: schema.KindBytes, Max: &pad}})
	f := s.NewFrame()
	must(t, s.SetBytes(f, 0, make([]byte, 9000)))
	file := written(t, "a.csv.gz", s, slices.Repeat([]*schema.Frame{f}, 10_000)...)
	var got *trace.Trace
	var err error
	most := peak(func(func()) {
		got, err = trace.LoadFS(fstest.MapFS{"a.csv.gz": {Data: file.Bytes()}}, "a.csv.gz", s)
	})
	if err == nil || !strings.Contains(err.Error(), "which is the limit") || len(got.Frames) == 0 || !got.Frames[len(got.Frames)-1].Equal(f) || most > 64<<20 {
		t.Errorf("%d bytes, %v", most, err)
	}
}

// TestLoadFrames compares Load with a Reader, for frames with each kind of field.
func TestLoadFrames(t *testing.T) {
	s := everyKind(t)
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, "a.csv", s)
	must(t, err)
	f := s.NewFrame()
	for n := range 5000 {
		blob := len(s.Fields()) - 1
		if err := errors.Join(
			s.QuantizeField(f, 0, []float64{float64(n), -float64(n), math.Sqrt(float64(n))}),
			s.SetUint(f, 6, 0, uint64(n)<<40),
			s.SetBytes(f, blob, bytes.Repeat([]byte{byte(n)}, n%9)),
			w.Write(f),
		); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	all, err := trace.LoadFS(fstest.MapFS{"a.csv": {Data: file.Bytes()}}, "a.csv", s)
	must(t, err)
	r, err := trace.NewReader(&file, "a.csv", s)
	must(t, err)
	for n := range all.Frames {
		if err := r.Read(f); err != nil || !f.Equal(&all.Frames[n]) {
			t.Fatalf("row %d: %v, %v, want %v", n, err, all.Frames[n], f)
		}
	}
	if err := r.Read(f); !errors.Is(err, io.EOF) {
		t.Errorf("%v after %d rows", err, len(all.Frames))
	}
}
