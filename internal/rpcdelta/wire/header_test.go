package wire

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		h    Header
		want []byte
	}{
		{"short", Header{Distance: 6, Seq: 77}, []byte{0b00001011, 0b00110100}},
		{"short, all zero", Header{Distance: 1}, []byte{0x00, 0x00}},
		{"short, all ones", Header{Distance: 64, Seq: 127}, []byte{0b00_11_1111, 0b1_1111111}},
		{"short, distance 16", Header{Distance: 16, Seq: 127}, []byte{0b00_0_1111_1, 0b111111_00}},
		{"short, distance 17", Header{Distance: 17}, []byte{0b00_10_0000, 0}},
		{"short, RPC 3", Header{RPC: 3, Distance: 6, Seq: 77}, []byte{0b01110010, 0b11001101}},
		{"short, RPC 1", Header{RPC: 1, Distance: 32, Seq: 127}, []byte{0b0101_10_11, 0b11_111111, 0b1_0000000}},
		{"short, RPC 4", Header{RPC: 4, Distance: 1}, []byte{0b01000000, 0, 0}},
		{"short, RPC 10", Header{RPC: 10, Distance: 6, Seq: 77}, []byte{0b01001100, 0b01011001, 0b10100000}},
		{"short, hash", Header{Distance: 6, Seq: 77, Checked: true, Hash: 0xbeef}, []byte{0b01001110, 0b00101100, 0b1101_1011, 0xee, 0xf0}},
		{"short, RPC 2, hash", Header{RPC: 2, Distance: 6, Seq: 77, Checked: true, Hash: 0xbeef}, []byte{0b01001111, 0b10001011, 0b001101_10, 0xfb, 0xbc}},
		{"delta", Header{Long: true, RPC: 200, Distance: 255, Seq: 0x1234}, []byte{0xa0, 200, 0x34, 0x12, 255}},
		{"delta with hash", Header{Long: true, RPC: 4, Distance: 2, Seq: 0x1234, Checked: true, Hash: 0xbeef}, []byte{0xb0, 4, 0x34, 0x12, 2, 0xef, 0xbe}},
		{"without baseline", Header{Long: true, RPC: 9, Epoch: 5, Seq: 0xfffe}, []byte{0x80, 9, 0xfe, 0xff, 5}},
	} {
		got := c.h.Append([]byte{0xaa})[1:]
		if !bytes.Equal(got, c.want) || len(got) != c.h.Size() {
			t.Errorf("%s: % x, want % x; size %d", c.name, got, c.want, c.h.Size())
		}
		h, err := Parse(append(c.want, 1, 2, 3))
		if err != nil || h != c.h {
			t.Errorf("%s: parsed as %+v, %v", c.name, h, err)
		}
		if rpc, err := PeekRPC(c.want); err != nil || rpc != int(c.h.RPC) {
			t.Errorf("%s: RPC %d, %v", c.name, rpc, err)
		}
		for n := range c.want {
			if _, err := Parse(c.want[:n]); !errors.Is(err, ErrMalformed) && n < c.h.Size() {
				t.Errorf("%s: %d of its bytes: %v", c.name, n, err)
			}
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	for _, b := range [][]byte{
		nil,
		{0x00},                                   // half a short one
		{0x40, 0},                                // two thirds of one
		{0x4e, 0, 0, 0},                          // without the end of its hash
		{0x4f, 0x20, 0, 0, 0, 0},                 // with a hash, of an RPC number above 3
		{0x80, 0, 0, 0},                          // short of an epoch
		{0x80, 0, 0, 0, 8},                       // no such epoch
		{0xa0, 0, 0, 0, 0},                       // distance 0
		{0x90, 0, 0, 0, 0, 1, 2},                 // hash of no baseline
		{0xb0, 0, 0, 0, 1, 1},                    // half a hash
		{0x88, 0, 0, 0, 0},                       // unknown flags
		{0x81, 0, 0, 0, 0},                       //
		{flagLong | flagControl, 0, 0, 0, 0},     // not a frame
		{flagLong | flagControl | 1, 0, 0, 0, 1}, //
		{0xff, 255, 255, 255, 255, 255, 255, 255},
	} {
		if h, err := Parse(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x is %+v, %v", b, h, err)
		}
		if _, err := PeekRPC(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x: %v", b, err)
		}
	}
}

func drawHeader(t *rapid.T) Header {
	h := Header{Long: rapid.Bool().Draw(t, "long")}
	if !h.Long {
		h.RPC = rapid.Uint8Max(maxShortRPC).Draw(t, "rpc")
		h.Distance = rapid.IntRange(1, maxShortDistance).Draw(t, "distance")
		h.Seq = rapid.Uint16Max(1<<shortSeqBits-1).Draw(t, "seq")
		if h.Checked = h.RPC <= maxShortHashRPC && rapid.Bool().Draw(t, "checked"); h.Checked {
			h.Hash = rapid.Uint16().Draw(t, "hash")
		}
		return h
	}
	h.RPC = rapid.Uint8().Draw(t, "rpc")
	h.Seq = rapid.Uint16().Draw(t, "seq")
	h.Distance = rapid.IntRange(0, MaxRing-1).Draw(t, "distance")
	if h.Distance == 0 {
		h.Epoch = rapid.Uint8Max(EpochMask).Draw(t, "epoch")
	} else if h.Checked = rapid.Bool().Draw(t, "checked"); h.Checked {
		h.Hash = rapid.Uint16().Draw(t, "hash")
	}
	return h
}

// TestHeaderRoundTrip also verifies that a payload is never mistaken for a control message.
func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		rest := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "rest")
		b := h.Append(nil)
		if b[0]&(flagLong|flagControl) == flagLong|flagControl {
			t.Fatalf("% x is a control message", b)
		}
		if b[len(b)-1]&(1<<h.FreeBits()-1) != 0 {
			t.Fatalf("% x, but %d bits are free", b, h.FreeBits())
		}
		b[len(b)-1] |= rapid.Byte().Draw(t, "behind") & (1<<h.FreeBits() - 1)
		got, err := Parse(append(b, rest...))
		if err != nil || got != h {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte{0x0b, 0x35, 1})
	f.Add([]byte{0x72, 0xcd, 1})
	f.Add([]byte{0x4c, 0x59, 0xa0, 1})
	f.Add([]byte{0x4e, 0x2c, 0xdb, 0xee, 0xf3, 1})
	f.Add([]byte{0xb0, 1, 0x34, 0x12, 2, 0xef, 0xbe, 1})
	f.Add([]byte{0x80, 9, 0xfe, 0xff, 5, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Parse(b)
		if rpc, e := PeekRPC(b); (e == nil) != (err == nil) || err == nil && rpc != int(h.RPC) {
			t.Fatalf("% x: a peek gives %d, %v, parsing %d, %v", b, rpc, e, h.RPC, err)
		}
		if err != nil {
			return
		}
		again := h.Append(nil)
		again[len(again)-1] |= b[len(again)-1] & (1<<h.FreeBits() - 1)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("% x comes back as % x", b, again)
		}
	})
}
