package rpcdelta

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		h    header
		want []byte
	}{
		// 3<<1 | 5<<4 | 77<<9 = 0x9a56
		{"short", header{rpc: 3, distance: 6, seq: 77}, []byte{0x56, 0x9a}},
		{"short, all zero", header{distance: 1}, []byte{0x00, 0x00}},
		{"short, all ones", header{rpc: 7, distance: 32, seq: 127}, []byte{0xfe, 0xff}},
		{"delta", header{long: true, rpc: 200, distance: 255, seq: 0x1234}, []byte{0x05, 200, 0x34, 0x12, 255}},
		{"delta with hash", header{long: true, rpc: 1, distance: 2, seq: 0x1234, checked: true, hash: 0xbeef}, []byte{0x0d, 1, 0x34, 0x12, 2, 0xef, 0xbe}},
		{"without baseline", header{long: true, rpc: 9, epoch: 5, seq: 0xfffe}, []byte{0x01, 9, 0xfe, 0xff, 5}},
	} {
		got := c.h.append([]byte{0xaa})[1:]
		if !bytes.Equal(got, c.want) || len(got) != c.h.size() {
			t.Errorf("%s: % x, want % x; size %d", c.name, got, c.want, c.h.size())
		}
		h, coded, err := parseHeader(append(c.want, 1, 2, 3))
		if err != nil || h != c.h || !bytes.Equal(coded, []byte{1, 2, 3}) {
			t.Errorf("%s: parsed as %+v, % x, %v", c.name, h, coded, err)
		}
		if rpc, err := PeekRPC(c.want); err != nil || rpc != int(c.h.rpc) {
			t.Errorf("%s: RPC %d, %v", c.name, rpc, err)
		}
		for n := range c.want {
			if _, _, err := parseHeader(c.want[:n]); !errors.Is(err, ErrMalformed) && n < c.h.size() {
				t.Errorf("%s: %d of its bytes: %v", c.name, n, err)
			}
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	for _, b := range [][]byte{
		nil,
		{0x00},
		{0x01, 0, 0, 0},               // short of an epoch
		{0x01, 0, 0, 0, 8},            // no such epoch
		{0x05, 0, 0, 0, 0},            // distance 0
		{0x09, 0, 0, 0, 0, 1, 2},      // hash of no baseline
		{0x0d, 0, 0, 0, 1, 1},         // half a hash
		{0x11, 0, 0, 0, 0},            // unknown flags
		{0x81, 0, 0, 0, 0},            //
		{ControlMask, 0, 0, 0, 0},     // not a frame
		{ControlMask | 4, 0, 0, 0, 1}, //
		{0xff, 255, 255, 255, 255, 255, 255, 255},
	} {
		if h, _, err := parseHeader(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x is %+v, %v", b, h, err)
		}
		if _, err := PeekRPC(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x: %v", b, err)
		}
	}
}

// TestNoFrameIsControl: what an encoder writes is never taken for a control
// message.
func TestNoFrameIsControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		if b := h.append(nil); b[0]&ControlMask == ControlMask {
			t.Fatalf("% x", b)
		}
	})
}

func drawHeader(t *rapid.T) header {
	h := header{long: rapid.Bool().Draw(t, "long")}
	if !h.long {
		h.rpc = rapid.Uint8Max(maxShortRPC).Draw(t, "rpc")
		h.distance = rapid.IntRange(1, maxShortDistance).Draw(t, "distance")
		h.seq = rapid.Uint16Max(1<<shortSeqBits-1).Draw(t, "seq")
		return h
	}
	h.rpc = rapid.Uint8().Draw(t, "rpc")
	h.seq = rapid.Uint16().Draw(t, "seq")
	h.distance = rapid.IntRange(0, MaxRing-1).Draw(t, "distance")
	if h.distance == 0 {
		h.epoch = rapid.Uint8Max(epochMask).Draw(t, "epoch")
	} else if h.checked = rapid.Bool().Draw(t, "checked"); h.checked {
		h.hash = rapid.Uint16().Draw(t, "hash")
	}
	return h
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		rest := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "rest")
		got, coded, err := parseHeader(append(h.append(nil), rest...))
		if err != nil || got != h || !bytes.Equal(coded, rest) {
			t.Fatalf("%+v, % x, %v", got, coded, err)
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte{0x56, 0x9a, 1})
	f.Add([]byte{0x0d, 1, 0x34, 0x12, 2, 0xef, 0xbe, 1})
	f.Add([]byte{0x01, 9, 0xfe, 0xff, 5, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, coded, err := parseHeader(b)
		if err != nil {
			return
		}
		if again := append(h.append(nil), coded...); !bytes.Equal(again, b) {
			t.Fatalf("% x comes back as % x", b, again)
		}
	})
}
