package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func readerSchema(t testing.TB) *schema.Schema {
	most := 2.0
	return newSchema(t, []schema.Field{
		{Name: "Pos", Kind: schema.KindVec2, Columns: []string{"x", "y"}, Resolution: 0.5},
		{Name: "Rot", Kind: schema.KindQuat, Columns: []string{"qx", "qy", "qz", "qw"}},
		{Name: "Keys", Kind: schema.KindBits, Columns: []string{"keys"}, Width: 8},
		{Name: "Turn", Kind: schema.KindInt, Columns: []string{"turn"}, Width: 8},
		{Name: "Fire", Kind: schema.KindBool, Columns: []string{"fire"}},
		{Name: "Data", Kind: schema.KindBytes, Columns: []string{"data"}, Max: &most},
	})
}

const readerHeader = "time_s,x,y,qx,qy,qz,qw,keys,turn,fire,data\n"

func TestReaderErrors(t *testing.T) {
	const good = "0,1.5,2,0,0,0,1,255,-128,1,beef\n"
	for _, c := range []struct {
		name, row, want string
		outOfRange      bool
	}{
		{"short row", "1,2,3\n", `trace: a.csv: row 2 (line 3): 3 cells, want 11 as in the header`, false},
		{"cut row", "1,2,3", `trace: a.csv: row 2 (line 3): 3 cells, want 11 as in the header: unexpected EOF: the file ends within this row`, false},
		{"row that is too long", `"` + strings.Repeat("x", trace.MaxRow), `trace: a.csv: after row 1, byte 262219 of the text: the row has more than 262144 bytes, which is the limit`, false},
		{"long text", "0,1.5," + strings.Repeat("x", 1000) + ",0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "y": "` + strings.Repeat("x", 100) + `..." is not a number`, false},
		{"long number", "0,1.5,2,0,0,0,1,1e" + strings.Repeat("9", 1000) + ",0,0,", `trace: a.csv: row 2 (line 3): column "keys": schema: Move: field "Keys": value 1e` + strings.Repeat("9", 98) + `..., want a whole number, 0 to 255`, true},
		{"long row", "1,2,3,4,5,6,7,8,9,10,11,12", `trace: a.csv: row 2 (line 3): 12 cells, want 11 as in the header`, false},
		{"no number", "0,1.5,two,0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "y": "two" is not a number`, false},
		{"empty", "0,,2,0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "x": empty, want a number`, false},
		{"range", "0,1,5e6,0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "y": schema: Move: field "Pos": value 5e+06, want -4194303.5 to 4194303.5`, true},
		{"NaN", "0,1,nan,0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "y": schema: Move: field "Pos": value NaN, want a finite number`, true},
		{"overflow", "0,-1e999,0,0,0,0,1,0,0,0,", `trace: a.csv: row 2 (line 3): column "x": schema: Move: field "Pos": value -Inf, want a finite number`, true},
		{"no rotation", "0,1,2,0,0,0,0,0,0,0,", `trace: a.csv: row 2 (line 3): columns "qx", "qy", "qz", "qw": schema: Move: field "Rot": value (0, 0, 0, 0), want a quaternion of a length above 0`, true},
		{"wide uint", "0,1,2,0,0,0,1,256,0,0,", `trace: a.csv: row 2 (line 3): column "keys": schema: Move: field "Keys": value 256, want 0 to 255`, true},
		{"huge uint", "0,1,2,0,0,0,1,18446744073709551616,0,0,", `trace: a.csv: row 2 (line 3): column "keys": schema: Move: field "Keys": value 18446744073709551616, want a whole number, 0 to 255`, true},
		{"negative uint", "0,1,2,0,0,0,1,-1,0,0,", `trace: a.csv: row 2 (line 3): column "keys": schema: Move: field "Keys": value -1, want a whole number, 0 to 255`, true},
		{"broken uint", "0,1,2,0,0,0,1,1.5,0,0,", `trace: a.csv: row 2 (line 3): column "keys": schema: Move: field "Keys": value 1.5, want a whole number, 0 to 255`, true},
		{"text as uint", "0,1,2,0,0,0,1,fire,0,0,", `trace: a.csv: row 2 (line 3): column "keys": "fire" is not a number`, false},
		{"wide int", "0,1,2,0,0,0,1,0,128,0,", `trace: a.csv: row 2 (line 3): column "turn": schema: Move: field "Turn": value 128, want -128 to 127`, true},
		{"huge int", "0,1,2,0,0,0,1,0,-1e300,0,", `trace: a.csv: row 2 (line 3): column "turn": schema: Move: field "Turn": value -1e300, want a whole number, -128 to 127`, true},
		{"empty int", "0,1,2,0,0,0,1,0,,0,", `trace: a.csv: row 2 (line 3): column "turn": empty, want a number`, false},
		{"wide bool", "0,1,2,0,0,0,1,0,0,2,", `trace: a.csv: row 2 (line 3): column "fire": schema: Move: field "Fire": value 2, want 0 to 1`, true},
		{"odd hex", "0,1,2,0,0,0,1,0,0,0,abc", `trace: a.csv: row 2 (line 3): column "data": encoding/hex: odd length hex string; want bytes as hexadecimal digits, two each`, false},
		{"no hex", "0,1,2,0,0,0,1,0,0,0,0x", `trace: a.csv: row 2 (line 3): column "data": encoding/hex: invalid byte: U+0078 'x'; want bytes as hexadecimal digits, two each`, false},
		{"long bytes", "0,1,2,0,0,0,1,0,0,0,abcdef", `trace: a.csv: row 2 (line 3): column "data": schema: Move: field "Data": value of 3 bytes, want at most 2`, true},
		{"bare quote", `0,1,2,0,"0"0,0,1,0,0,0,ab`, `trace: a.csv: row 2 (line 3): extraneous or missing " in quoted-field at character 11`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := trace.NewReader(strings.NewReader(readerHeader+good+c.row), "a.csv", readerSchema(t))
			must(t, err)
			f := readerSchema(t).NewFrame()
			must(t, r.Read(f))
			err = r.Read(f)
			wantError(t, err, c.want)
			if errors.As(err, new(*schema.RangeError)) != c.outOfRange {
				t.Errorf("a RangeError: %v", !c.outOfRange)
			}
		})
	}
}

func TestHeaderErrors(t *testing.T) {
	many := strings.Repeat("a,", 40) + "b\n"
	for _, c := range []struct{ file, want string }{
		{"", "trace: a.csv: empty; want a header row of column names"},
		{"time_s,x\n", `trace: a.csv: no column "y", which field "Pos" of Move wants; the header has "time_s", "x"`},
		{many, `trace: a.csv: no column "x", which field "Pos" of Move wants; the header has ` + strings.Repeat(`"a", `, 30) + "and 11 more"},
		{"x,y,x\n", `trace: a.csv: column "x", which field "Pos" wants, is there twice`},
		{`"x`, `trace: a.csv: header: parse error on line 1, column 3: extraneous or missing " in quoted-field`},
	} {
		_, err := trace.NewReader(strings.NewReader(c.file), "a.csv", readerSchema(t))
		wantError(t, err, c.want)
	}
}

// TestReaderLeniency reads the output of spreadsheets and other tools.
func TestReaderLeniency(t *testing.T) {
	file := "\ufeff" + strings.ReplaceAll(readerHeader, ",", ", ") +
		"\n" + // skipped
		"0, 1.0 ,2e0,0,0,0,1,255.0,-1e1,true,\"BE\"\r\n"
	s := readerSchema(t)
	r, err := trace.NewReader(strings.NewReader(file), "a.csv", s)
	must(t, err)
	f := s.NewFrame()
	must(t, r.Read(f))
	if s.Uint(f, 2, 0) != 255 || s.Int(f, 3, 0) != -10 || s.Uint(f, 4, 0) != 1 || !bytes.Equal(s.BytesOf(f, 5), []byte{0xbe}) {
		t.Errorf("%v", f)
	}
	if got := r.Floats(0); got[0] != 1 || got[1] != 2 || r.Row() != 1 {
		t.Errorf("%v in row %d", got, r.Row())
	}
	if v, ok := r.Text("x"); !ok || v != "1.0" {
		t.Errorf("%q", v)
	}
	if v, ok := r.Text("z"); ok {
		t.Errorf("%q in a column that is not there", v)
	}
}

func TestBrokenGzip(t *testing.T) {
	s := readerSchema(t)
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	row := "0,1.5,2,0,0,0,1,255,-128,1,beef\n"
	if _, err := io.WriteString(z, readerHeader+strings.Repeat(row, 1000)); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
	whole := file.Bytes()
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 1 // the checksum
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"plain", []byte(readerHeader + row), "trace: a.csv.gz: gzip: invalid header: not a gzip file, which its name says it is"},
		{"cut off", whole[:len(whole)-20], "unexpected EOF: the gzip file is cut off"},
		{"damaged", damaged, fmt.Sprintf("trace: a.csv.gz: after row 1000, byte %d of the text: gzip: invalid checksum: the gzip file is damaged", len(readerHeader)+1000*len(row))},
	} {
		r, err := trace.NewReader(bytes.NewReader(c.file), "a.csv.gz", s)
		f := s.NewFrame()
		for err == nil {
			err = r.Read(f)
		}
		if !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	const good, bad = "0,1.5,2,0,0,0,1,255,-128,1,beef\n", "1,x\n"
	path := filepath.Join(t.TempDir(), "a.csv")
	must(t, os.WriteFile(path, []byte(readerHeader), 0o600))
	_, err := trace.Load(path, readerSchema(t))
	wantError(t, err, "trace: "+path+": no rows below the header")
	files := fstest.MapFS{"a.csv": {Data: []byte(readerHeader + bad)}}
	_, err = trace.LoadFS(files, "a.csv", readerSchema(t))
	wantError(t, err, "trace: a.csv: row 1 (line 2): 2 cells, want 11 as in the header")
	files["a.csv"].Data = []byte(readerHeader + good + bad)
	part, err := trace.LoadFS(files, "a.csv", readerSchema(t))
	wantError(t, err, "trace: a.csv: row 2 (line 3): 2 cells, want 11 as in the header")
	if part == nil || len(part.Frames) != 1 {
		t.Errorf("the row before the damage is not there: %+v", part)
	}
	_, noSchema := trace.Load(path, nil)
	_, noSchemaFS := trace.LoadFS(files, "a.csv", nil)
	_, noTrace := trace.Load(filepath.Join(t.TempDir(), "a.csv"), readerSchema(t))
	_, noTraceFS := trace.LoadFS(files, "b.csv", readerSchema(t))
	for name, err := range map[string]error{
		"a.schema.json": noSchema, "open a.schema.json": noSchemaFS, "a.csv": noTrace, "b.csv": noTraceFS,
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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

// Open makes a bomb a file system with itself as the only file.
func (b *bomb) Open(string) (fs.File, error) { return b, nil }
func (b *bomb) Stat() (fs.FileInfo, error)   { return nil, errors.ErrUnsupported }
func (b *bomb) Close() error                 { return nil }

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
				got, err = trace.LoadFS(&bomb{rest: []byte(c.head), part: []byte(c.part), left: c.size, onRead: sample}, "a.csv", c.schema)
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
