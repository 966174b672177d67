package bitio

import "testing"

// BenchmarkWriter writes a frame of 20 components of 11 bits with a header for every three.
func BenchmarkWriter(b *testing.B) {
	dst := make([]byte, 0, 64)
	var w Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(dst)
		for i := range uint64(20) {
			if i%3 == 0 {
				w.WriteTruncated(9, 24)
			}
			w.WriteBits(i, 11)
		}
		w.Bytes()
	}
}

// BenchmarkReader reads what BenchmarkWriter writes.
func BenchmarkReader(b *testing.B) {
	var w Writer
	for i := range uint64(20) {
		if i%3 == 0 {
			w.WriteTruncated(9, 24)
		}
		w.WriteBits(i, 11)
	}
	src := w.Bytes()
	var r Reader
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(src)
		for i := range uint64(20) {
			if i%3 == 0 {
				r.ReadTruncated(24)
			}
			r.ReadBits(11)
		}
	}
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
}
