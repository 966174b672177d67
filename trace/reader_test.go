package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
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
	for name, err := range map[string]error{"a.schema.json": noSchema, "open a.schema.json": noSchemaFS, "a.csv": noTrace, "b.csv": noTraceFS} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
