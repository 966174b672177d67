package trace_test

import (
	"errors"
	"io"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

func BenchmarkRead(b *testing.B) {
	s := sample.RocketLeague()
	f := s.Schema.NewFrame()
	open := func() *trace.Reader {
		r, err := trace.OpenFS(sample.Files, s.Name+".csv.gz", s.Schema)
		must(b, err)
		return r
	}
	r := open()
	b.ReportAllocs()
	for b.Loop() {
		err := r.Read(f)
		if errors.Is(err, io.EOF) {
			r = open()
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	s := sample.RocketLeague()
	w, err := trace.NewWriter(io.Discard, "a.csv", s.Schema)
	must(b, err)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		must(b, w.Write(s.At(n)))
		n++
	}
}
