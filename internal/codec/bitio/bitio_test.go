package bitio

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// model is a writer of single bits, each in a byte of its own.
type model []byte

func (m *model) write(v uint64, n uint) {
	for i := range n {
		*m = append(*m, byte(v>>i&1))
	}
}

// truncated is the engine's loop, word for word.
func (m *model) truncated(v, limit uint32) {
	value := uint64(0)
	for mask := uint64(1); value+mask < uint64(limit); mask <<= 1 {
		bit := uint64(v) & mask
		m.write(min(bit, 1), 1)
		value |= bit
	}
}

func (m *model) align() {
	for len(*m)%8 != 0 {
		*m = append(*m, 0)
	}
}

func (m *model) bytes() []byte {
	m.align()
	out := make([]byte, len(*m)/8)
	for i, bit := range *m {
		out[i/8] |= bit << (i % 8)
	}
	return out
}

// TestTruncatedSizes pins the header of the engine's packed vector, with a limit of 24, and others.
func TestTruncatedSizes(t *testing.T) {
	for _, c := range []struct {
		v, limit uint32
		want     int
	}{
		{0, 24, 5},
		{7, 24, 5},
		{8, 24, 4},
		{15, 24, 4},
		{16, 24, 5},
		{0, 1, 0},
		{0, 2, 1},
		{1, 2, 1},
		{math.MaxUint32 - 1, math.MaxUint32, 32},
		{1<<31 - 1, math.MaxUint32, 31},
		{1<<31 - 1, 1 << 31, 31},
	} {
		if got := TruncatedBits(c.v, c.limit); got != c.want {
			t.Errorf("TruncatedBits(%d, %d) = %d, want %d", c.v, c.limit, got, c.want)
		}
	}
	for limit := range uint32(256) {
		for b := range 256 { // any bits are below the limit
			var r Reader
			r.Reset([]byte{byte(b)})
			if v := r.ReadTruncated(limit + 1); v > limit || r.Err() != nil {
				t.Fatalf("%#x reads as %d, limit %d, %v", b, v, limit+1, r.Err())
			}
		}
	}
}

// item is one thing written: n bits, a truncated integer, an alignment or bytes.
type item struct {
	kind  int
	v     uint64
	n     uint
	limit uint32
	b     []byte
}

const (
	kindBits = iota
	kindTruncated
	kindAlign
	kindFlush
	kindBytes
	kinds
)

var items = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
	it := item{kind: rapid.IntRange(0, kinds-1).Draw(t, "kind")}
	switch it.kind {
	case kindBits:
		it.v = rapid.Uint64().Draw(t, "v")
		it.n = rapid.UintRange(0, 64).Draw(t, "n")
	case kindTruncated:
		it.limit = rapid.OneOf(rapid.Uint32Range(1, 140), rapid.Uint32Min(1)).Draw(t, "limit")
		it.v = uint64(rapid.Uint32Range(0, it.limit-1).Draw(t, "v"))
	case kindBytes:
		it.b = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
	}
	return it
}), 0, 40)

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "prefix")
		list := items.Draw(t, "items")
		var m model
		var w Writer
		w.Reset(bytes.Clone(prefix))
		for _, it := range list {
			writeItem(&w, &m, it)
			if w.Bits() != len(m) {
				t.Fatalf("Bits() = %d after %+v, want %d", w.Bits(), it, len(m))
			}
		}
		written := len(m)
		got := w.Bytes()
		if want := append(prefix, m.bytes()...); !bytes.Equal(got, want) {
			t.Fatalf("wrote %x, want %x", got, want)
		}

		coded := bytes.Clone(got)
		var r Reader
		r.Reset(got[len(prefix):])
		for _, it := range list {
			readItem(t, &r, it)
		}
		if left := len(m) - written; r.Len() != left || r.Err() != nil {
			t.Fatalf("%d bits left, %v; want %d", r.Len(), r.Err(), left)
		}
		if !bytes.Equal(got, coded) {
			t.Fatal("reading changed the input")
		}
	})
}

func writeItem(w *Writer, m *model, it item) {
	switch it.kind {
	case kindBits:
		w.WriteBits(it.v, it.n)
		m.write(it.v, it.n)
	case kindTruncated:
		w.WriteTruncated(uint32(it.v), it.limit)
		m.truncated(uint32(it.v), it.limit)
	case kindAlign:
		w.Align()
		m.align()
	case kindFlush:
		w.Bytes()
		m.align()
	case kindBytes:
		w.Align()
		w.AppendBytes(it.b)
		m.align()
		for _, b := range it.b {
			m.write(uint64(b), 8)
		}
	}
}

func readItem(t *rapid.T, r *Reader, it item) {
	switch it.kind {
	case kindBits:
		if got, want := r.ReadBits(it.n), it.v&(1<<it.n-1); got != want {
			t.Fatalf("read %x for %x", got, want)
		}
	case kindTruncated:
		if got := r.ReadTruncated(it.limit); uint64(got) != it.v {
			t.Fatalf("read %d for %d below %d", got, it.v, it.limit)
		}
	case kindAlign, kindFlush:
		r.Align()
	case kindBytes:
		r.Align()
		rest := r.Rest()
		if !bytes.HasPrefix(rest, it.b) || cap(rest) != len(rest) {
			t.Fatalf("rest %x (capacity %d) for %x", rest, cap(rest), it.b)
		}
		r.Reset(rest[len(it.b):])
	}
}

func TestMisusePanics(t *testing.T) {
	var w Writer
	w.WriteBits(0, 1)
	var r Reader
	r.Reset([]byte{0, 0})
	r.ReadBits(1)
	for _, f := range []func(){
		func() { w.WriteBits(0, 65) },
		func() { w.WriteBits(0, math.MaxUint) },
		func() { w.WriteTruncated(24, 24) },
		func() { w.WriteTruncated(0, 0) },
		func() { TruncatedBits(24, 24) },
		func() { w.AppendBytes(nil) }, // between bytes
		func() { r.ReadBits(65) },
		func() { r.ReadBits(math.MaxUint) },
		func() { r.Rest() }, // between bytes
	} {
		check.Panics(t, f)
	}
}

// TestShort reads one bit too many from every length and at every offset.
func TestShort(t *testing.T) {
	for size := range 12 {
		src := bytes.Repeat([]byte{0xff}, size)
		for skip := range uint(min(size*8, 64) + 1) {
			n := uint(size*8) - skip + 1
			if n > 64 {
				continue
			}
			var r Reader
			r.Reset(src)
			r.ReadBits(skip)
			if got := r.ReadBits(n - 1); got != 1<<(n-1)-1 || r.Len() != 0 || r.Err() != nil {
				t.Fatalf("%d bytes, %d bits after %d: %x, %d left, %v", size, n-1, skip, got, r.Len(), r.Err())
			}
			r.Reset(src)
			r.ReadBits(skip)
			if got := r.ReadBits(n); got != 0 || !errors.Is(r.Err(), ErrShort) {
				t.Fatalf("%d bytes, %d bits after %d: %x, %v", size, n, skip, got, r.Err())
			}
		}
	}
}

func TestErrorsStick(t *testing.T) {
	var r Reader
	if r.Reset([]byte{0b1111, 0xff}); r.ReadBits(3) != 7 {
		t.Fatal("first bits")
	}
	r.Align()
	if !errors.Is(r.Err(), ErrPadding) {
		t.Fatalf("Align over a one: %v", r.Err())
	}
	if r.ReadBits(1) != 0 || r.ReadTruncated(24) != 0 || r.Len() != 0 || len(r.Rest()) != 0 {
		t.Fatal("something left after an error")
	}
	if r.Align(); !errors.Is(r.Err(), ErrPadding) {
		t.Fatalf("the first error was replaced by %v", r.Err())
	}
	if r.Reset([]byte{0b111}); r.ReadBits(3) != 7 || r.Err() != nil {
		t.Fatal("Reset does not forget the error")
	}
	if r.Align(); r.Err() != nil || r.Len() != 0 {
		t.Fatalf("Align over zeros: %v, %d left", r.Err(), r.Len())
	}
	// The first four bits of 7 are there, the fifth is not.
	if r.Reset([]byte{7 << 4}); r.ReadBits(4) != 0 || r.ReadTruncated(24) != 0 || !errors.Is(r.Err(), ErrShort) {
		t.Fatalf("truncated integer cut short: %v", r.Err())
	}
	if r.Reset(nil); r.ReadTruncated(0) != 0 || r.ReadTruncated(1) != 0 || r.Err() != nil {
		t.Fatalf("limits without bits: %v", r.Err())
	}
}

// TestWidths writes and reads integers of each width from each bit on.
func TestWidths(t *testing.T) {
	const v = 0xfedc_ba98_7654_3210
	for n := range uint(65) {
		var w Writer
		for range 64 {
			w.WriteBits(1, 1)
			w.WriteBits(v, n)
		}
		var r Reader
		r.Reset(w.Bytes())
		for i := range 64 {
			if one, got := r.ReadBits(1), r.ReadBits(n); one != 1 || got != v&(1<<n-1) {
				t.Fatalf("integer %d of %d bits is %d, %#x", i, n, one, got)
			}
		}
	}
}
