package bitio

import "testing"

// writeFrame writes a frame of 20 components of 11 bits with a header for every three.
func writeFrame(w *Writer, dst []byte) {
	w.Reset(dst)
	for i := range uint64(20) {
		if i%3 == 0 {
			w.WriteTruncated(9, 24)
		}
		w.WriteBits(i, 11)
	}
	w.Bytes()
}

func readFrame(r *Reader, src []byte) {
	r.Reset(src)
	for i := range uint64(20) {
		if i%3 == 0 {
			r.ReadTruncated(24)
		}
		r.ReadBits(11)
	}
}

func BenchmarkWriter(b *testing.B) {
	dst := make([]byte, 0, 64)
	var w Writer
	b.ReportAllocs()
	for b.Loop() {
		writeFrame(&w, dst)
	}
}

func BenchmarkReader(b *testing.B) {
	var w Writer
	writeFrame(&w, nil)
	var r Reader
	b.ReportAllocs()
	for b.Loop() {
		readFrame(&r, w.Bytes())
	}
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
}
