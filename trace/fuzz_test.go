package trace_test

import (
	"bytes"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
)

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
