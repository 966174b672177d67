package rpcdelta

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

func TestAckBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		a    Ack
		want []byte
	}{
		// 5<<1 | 3<<4 | whole 1<<7
		{"first of an epoch", Ack{RPC: 5, Epoch: 3, Whole: true, Seq: 0xabcd}, []byte{0xba, 0x00, 0xcd, 0xab}},
		{"no holes", Ack{RPC: 5, Epoch: 3, Seq: 0xabcd, Len: 6, Window: 0x3f}, []byte{0x3a, 0x0c, 0xcd, 0xab}},
		{"longest", Ack{Seq: 1, Len: 63, Window: 1<<63 - 1}, []byte{0x00, 0x7e, 0x01, 0x00}},
		{"holes", Ack{RPC: 5, Epoch: 3, Seq: 0xabcd, Len: 6, Window: 0x2f}, []byte{0x3a, 0x0d, 0xcd, 0xab, 0x2f}},
		{"holes in two bytes", Ack{Seq: 7, Len: 9, Window: 0x101}, []byte{0x00, 0x13, 0x07, 0x00, 0x01, 0x01}},
		{"all lost", Ack{Seq: 7, Len: 1}, []byte{0x00, 0x03, 0x07, 0x00, 0x00}},
		{"high RPC", Ack{RPC: 8, Epoch: 7, Seq: 7}, []byte{0x71, 0x00, 0x07, 0x00, 8}},
		{"missing baseline", Ack{RPC: 1, ResetReason: ErrBaselineMissing, Seq: 7}, []byte{0x03, 0x00, 0x07, 0x00, 1}},
		{"desync", Ack{RPC: 1, ResetReason: ErrDesync, Seq: 7, Len: 2, Window: 1}, []byte{0x05, 0x05, 0x07, 0x00, 1, 0x01}},
		{"nothing yet", Ack{RPC: 1, None: true}, []byte{0x09, 0x00, 0x00, 0x00, 1}},
		{"nothing yet, reset requested", Ack{RPC: 1, None: true, ResetReason: ErrBaselineMissing}, []byte{0x0b, 0x00, 0x00, 0x00, 1}},
	} {
		if got := c.a.Append([]byte{0xaa})[1:]; !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", c.name, got, c.want)
		}
		a, rest, err := ParseAck(append(bytes.Clone(c.want), 9, 9))
		if err != nil || a != c.a || !bytes.Equal(rest, []byte{9, 9}) {
			t.Errorf("%s: parsed as %+v, % x, %v", c.name, a, rest, err)
		}
		for n := range c.want {
			if _, _, err := ParseAck(c.want[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %d of its bytes: %v", c.name, n, err)
			}
		}
	}
}

func TestAckErrors(t *testing.T) {
	for _, b := range [][]byte{
		{0x00, 0x80, 0x00, 0x00},             // the spare bit
		{0x07, 0x00, 0x00, 0x00, 1},          // no such reason
		{0x09, 0x02, 0x00, 0x00, 1},          // nothing processed, but a window
		{0x09, 0x00, 0x01, 0x00, 1},          // nothing processed, but a sequence
		{0x00, 0x05, 0x00, 0x00, 0x04},       // a bit above the window
		{0x00, 0x7f, 0x00, 0x00, 1, 2, 3, 4}, // half a window
	} {
		if a, _, err := ParseAck(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x is %+v, %v", b, a, err)
		}
	}
}

func TestAckRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ack{
			RPC:         rapid.Uint8().Draw(t, "rpc"),
			Epoch:       rapid.Uint8Max(wire.EpochMask).Draw(t, "epoch"),
			ResetReason: rapid.SampledFrom(resetReasons).Draw(t, "reason"),
			None:        rapid.Bool().Draw(t, "none"),
			Whole:       rapid.Bool().Draw(t, "whole"),
		}
		if !a.None {
			a.Seq = rapid.Uint16().Draw(t, "seq")
			a.Len = rapid.IntRange(0, ackWindow).Draw(t, "len")
			a.Window = rapid.Uint64Max(seq.Mask(uint64(a.Len))).Draw(t, "window")
		}
		rest := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "rest")
		b := a.Append(nil)
		got, after, err := ParseAck(append(b, rest...))
		if err != nil || got != a || !bytes.Equal(after, rest) || len(b) > 13 {
			t.Fatalf("%+v, % x, %v", got, after, err)
		}
	})
}

// TestAckWindow verifies that acks cover the whole epoch until the decoder learns from the baseline
// of a delta that the encoder received an ack. Later acks reach back to that baseline. An epoch
// that exceeds the window before its first ack arrives ends.
func TestAckWindow(t *testing.T) { forVariants(t, checkackWindow) }

func checkackWindow(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{})
	p.frame.Ints[0] = 1 << 20
	next := func() Ack {
		p.send(t)
		p.receive(t)
		a, _, err := ParseAck(p.dec.AppendAck(nil))
		must(t, err)
		return a
	}
	for n := range 70 {
		a := next()
		want := Ack{Seq: uint16(n), Len: min(n, ackWindow), Window: seq.Mask(uint64(min(n, ackWindow))), Whole: n <= ackWindow}
		if a != want {
			t.Fatalf("frame %d: %+v, want %+v", n, a, want)
		}
	}
	p.acknowledge(t)
	if p.enc.epoch != 1 || p.enc.hasBase {
		t.Fatalf("epoch %d", p.enc.epoch)
	}
	if a, want := next(), (Ack{Epoch: 1, Seq: 70, Whole: true}); a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	p.acknowledge(t) // 70 is the baseline of 71 to 74
	for n := range 4 {
		if a, want := next(), (Ack{Epoch: 1, Seq: 71 + uint16(n), Len: n, Window: seq.Mask(uint64(n))}); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
}

func FuzzParseAck(f *testing.F) {
	f.Add([]byte{0xba, 0x0d, 0xcd, 0xab, 0x2f})
	f.Add([]byte{0x05, 0x05, 0x07, 0x00, 1, 0x01})
	f.Add([]byte{0x00, 0x7f, 0x00, 0x00, 1, 2, 3, 4, 5, 6, 7, 8})
	s := mustSchema(f, schema.Field{Name: "B", Kind: schema.KindBool})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, rest, err := ParseAck(b)
		if err != nil {
			return
		}
		if len(rest) > len(b)-4 {
			t.Fatal("nothing was read")
		}
		again, _, err := ParseAck(a.Append(nil))
		if err != nil || again != a {
			t.Fatalf("%+v comes back as %+v, %v", a, again, err)
		}
		p := newPair(t, s, EncoderConfig{}, DecoderConfig{})
		_ = p.enc.Ack(a) // before the first frame
		p.exchange(t)
		_ = p.enc.Ack(a)
		p.send(t)
	})
}
