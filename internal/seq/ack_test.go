package seq_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/seq"
)

func TestAckBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		a    seq.Ack
		want []byte
	}{
		{"nothing missing", seq.Ack{Stream: 5, Epoch: 3, Newest: 0x3cd, Len: 6, Window: 0x3f}, []byte{0x3a, 0x46, 0xf3}},
		{"longest", seq.Ack{Newest: 1, Len: 62, Window: 1<<62 - 1}, []byte{0x00, 0x7e, 0x00}},
		{"cut", seq.Ack{Newest: 1, Len: 63, Window: 1<<63 - 1}, []byte{0x01, 1, 0, 63}},
		{"shortest", seq.Ack{Newest: 0x3cd, Len: 6, Window: 0x3f}, []byte{0xed, 0xcd}},
		{"longest of the shortest", seq.Ack{Newest: 0x1cd, Len: 15, Window: 0x7fff}, []byte{0xbf, 0xcd}},
		{"no longer shortest", seq.Ack{Newest: 1, Len: 16, Window: 0xffff}, []byte{0x00, 0x50, 0x00}},
		{"a gap", seq.Ack{Newest: 1, Len: 12, Window: 0b1111_1001_1111}, []byte{0x80, 0x4c, 0x00, 0x25}},
		{"a long gap", seq.Ack{Newest: 1, Len: 12, Window: 0b1000_0000_1111}, []byte{0x80, 0x4c, 0x00, 0xc4}},
		{"a gap of 8", seq.Ack{Newest: 1, Len: 12, Window: 0b1000_0000_0111}, []byte{0x80, 0x4c, 0x00, 0xe7, 0x40}},
		{"an old gap", seq.Ack{Newest: 1, Len: 40, Window: 1<<40 - 1 - 1<<32}, []byte{0x80, 0x68, 0x00, 0xff, 0xff, 0xff, 0xff, 0xf7, 0x07}},
		{"two gaps", seq.Ack{Newest: 1, Len: 6, Window: 0b10_1011}, []byte{0x80, 0x46, 0x00, 0xeb, 0x01}},
		{"two gaps in a longer window", seq.Ack{Newest: 1, Len: 9, Window: 0b1_0110_1011}, []byte{0x80, 0x49, 0x00, 0xeb, 0x0b}},
		{"whole", seq.Ack{Whole: true, Newest: 0xabcd}, []byte{0x11, 0xcd, 0xab, 0}},
		{"high stream", seq.Ack{Stream: 8, Epoch: 7, Newest: 7}, []byte{0x41, 8, 7, 7, 0, 0}},
		{"reset", seq.Ack{Stream: 1, Reset: 2, Newest: 7, Len: 2, Window: 1}, []byte{0x65, 1, 0, 7, 0, 2, 0x01}},
		{"nothing yet", seq.Ack{None: true}, []byte{0x09}},
	} {
		if got := c.a.Append(nil); !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", c.name, got, c.want)
		}
	}
}

func drawAck(t *rapid.T) seq.Ack {
	a := seq.Ack{
		Stream: rapid.SampledFrom([]uint8{0, 1, 7, 8, 255}).Draw(t, "stream"),
		Epoch:  rapid.SampledFrom([]uint8{0, 1, 7, 8, 255}).Draw(t, "epoch"),
		None:   rapid.Bool().Draw(t, "none"),
		Reset:  rapid.SampledFrom([]uint8{0, 0, 1, 2, 3}).Draw(t, "reset"),
	}
	if !a.None {
		a.Whole = rapid.Bool().Draw(t, "whole")
		a.Len = rapid.IntRange(0, 63).Draw(t, "len")
		w := rapid.SampledFrom([]uint64{^uint64(0), ^uint64(7 << 5), rapid.Uint64().Draw(t, "bits")}).Draw(t, "window")
		a.Window = w & seq.Mask(uint64(a.Len))
		a.Newest = rapid.Uint16().Draw(t, "newest") & uint16(seq.Mask(uint64(a.Width())))
	}
	return a
}

func TestAckRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAck(t)
		b := a.Append(nil)
		got, rest, ok := seq.ParseAck(append(b, 9))
		if !ok || got != a || len(rest) != 1 || len(b) > seq.MaxAck {
			t.Fatalf("%+v, % x, comes as %+v, %v", a, b, got, ok)
		}
		for n := range b {
			if _, _, ok := seq.ParseAck(b[:n]); ok {
				t.Fatalf("%d bytes of % x are an ack", n, b)
			}
		}
		want := 3
		if a.Stream|a.Epoch == 0 && a.Len <= 15 {
			want = 2
		}
		if missing := a.Len > 0 && a.Window != seq.Mask(uint64(a.Len)); a.Width() == 10 && !missing && len(b) != want {
			t.Fatalf("%+v has %d bytes", a, len(b))
		}
	})
}

func TestAckFullWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 64).Draw(t, "size")
		var a seq.Ack
		w := rapid.Uint64().Draw(t, "bits") & seq.Mask(uint64(size))
		w = rapid.SampledFrom([]uint64{w, 0, seq.Mask(uint64(size)), w >> (size / 2)}).Draw(t, "window")
		a.SetWindow(w, size)
		if got := a.FullWindow(size); got != w || a.Len > 63 {
			t.Fatalf("window %#x of %d comes as %#x (%+v)", w, size, got, a)
		}
	})
}

// FuzzParseAck checks that accepted bytes are those that Append writes.
func FuzzParseAck(f *testing.F) {
	f.Add([]byte{0x3a, 0x46, 0xf3})
	f.Add([]byte{0x80, 0x49, 0x00, 0xeb, 0x0b})
	f.Add([]byte{0xed, 0xcd})
	f.Add([]byte{0x65, 1, 0, 7, 0, 2, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, rest, ok := seq.ParseAck(b)
		if !ok {
			return
		}
		if n := len(b) - len(rest); n > seq.MaxAck || !bytes.Equal(a.Append(nil), b[:n]) || !bytes.Equal(rest, b[n:]) {
			t.Fatalf("%+v is not % x", a, b)
		}
	})
}
