package trace_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// TestRoundTrip writes and reads frames of random schemas.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		name := rapid.SampledFrom([]string{"a.csv", "a.csv.gz"}).Draw(t, "name")
		note := rapid.StringMatching(`[ -~]*`).Draw(t, "note")
		var file bytes.Buffer
		w, err := trace.NewWriter(&file, name, s, "player", "note")
		must(t, err)
		frames := make([]*schema.Frame, rapid.IntRange(0, 5).Draw(t, "frames"))
		for i := range frames {
			frames[i] = drawFrame(t, s)
			must(t, w.Write(frames[i], strconv.Itoa(i), note))
		}
		must(t, w.Close())
		text := file.String()
		r, err := trace.NewReader(&file, name, s)
		must(t, err)
		for i, want := range frames {
			got := s.NewFrame()
			if err := r.Read(got); err != nil || !got.Equal(want) {
				t.Fatalf("row %d: %v: %v, want %v, from %q", i+1, err, got, want, text)
			}
			if p, ok := r.Text("player"); !ok || p != strconv.Itoa(i) {
				t.Fatalf("row %d: player %q", i+1, p)
			}
			if n, _ := r.Text("note"); n != strings.TrimSpace(note) {
				t.Fatalf("row %d: note %q, want %q", i+1, n, note)
			}
		}
		if err := r.Read(s.NewFrame()); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last row: %v", err)
		}
	})
}

// TestRecordIsATrace writes a sample with its schema file and loads both.
func TestRecordIsATrace(t *testing.T) {
	for _, s := range []*trace.Trace{sample.Portal2(), sample.RocketLeague()} {
		path := filepath.Join(t.TempDir(), s.Name+".csv.gz")
		w, err := trace.Create(path, s.Schema, "sequence")
		must(t, err)
		for i := range s.Frames {
			must(t, w.Write(&s.Frames[i], strconv.Itoa(i)))
		}
		must(t, errors.Join(w.Close(), trace.WriteSchema(trace.SchemaPath(path), s.Schema)))
		got, err := trace.Load(path, nil)
		must(t, err)
		if got.Name != s.Name || len(got.Frames) != len(s.Frames) || got.Schema.Fingerprint() != s.Schema.Fingerprint() {
			t.Fatalf("%s with %d frames, want %s with %d", got.Name, len(got.Frames), s.Name, len(s.Frames))
		}
		for i := range s.Frames {
			if !got.Frames[i].Equal(&s.Frames[i]) {
				t.Fatalf("%s: frame %d differs", s.Name, i)
			}
		}
	}
}

// FuzzReader reads hostile rows. Accepted frames must survive being written and read.
func FuzzReader(f *testing.F) {
	schema := everyKind(f)
	header := written(f, "a.csv", schema).String()
	for _, row := range []string{
		"1.5,0,0,1,1,0,0,90,-180,0,0,0,1,0,0,1,0,0,0,0,0,1,abcdef,beef\n",
		"1e300,0,0,1,1,0,0,90,-180,0,0,0,1,0,0,1,0,0,0,0,0,1,abcdef,beef",
		"nan,,-0,0x1p3,1_0,+1,.5,5e-324,Inf\n",
		"0,0,0,0,0,0,0,0,0,0.5,0.5,-0.5,-0.5,-0,0,-1,18446744073709551615,-64,63.0,-9223372036854775808,1e3,false,000000,\n",
		"\"\"\"\n\",\"\r\n",
		"\xff,\x00\n\n\n,,,,,,,,,,,,,,,,,,,,,,,\n",
	} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, rows string) {
		r, err := trace.NewReader(bytes.NewReader([]byte(header+rows)), "a.csv", schema)
		must(t, err)
		frame, again := schema.NewFrame(), schema.NewFrame()
		for r.Read(frame) == nil {
			file := written(t, "b.csv", schema, frame)
			text := file.String()
			second, err := trace.NewReader(file, "b.csv", schema)
			must(t, err)
			if err := second.Read(again); err != nil || !again.Equal(frame) {
				t.Fatalf("%v: %v, want %v, from %q", err, again, frame, text)
			}
		}
	})
}

// FuzzGzip reads hostile compressed files.
func FuzzGzip(f *testing.F) {
	schema := everyKind(f)
	file := written(f, "a.csv.gz", schema, schema.NewFrame())
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:file.Len()-9])
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := trace.NewReader(bytes.NewReader(data), "a.csv.gz", schema)
		if err != nil {
			return
		}
		frame := schema.NewFrame()
		for rows := 1; r.Read(frame) == nil; rows++ {
			if r.Row() != rows {
				t.Fatalf("row %d, want %d", r.Row(), rows)
			}
		}
	})
}
