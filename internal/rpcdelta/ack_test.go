package rpcdelta

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
)

func TestAckBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		a    Ack
		size int
	}{
		{"first of an epoch", Ack{RPC: 5, Epoch: 3, Whole: true, Seq: 0xabcd}, 6},
		{"no holes", Ack{RPC: 5, Epoch: 3, Seq: 0x3cd, Len: 6, Window: 0x3f}, 3},
		{"longest", Ack{Seq: 1, Len: 62, Window: 1<<62 - 1}, 3},
		{"cut", Ack{Seq: 0xabcd, Len: 63, Window: 1<<63 - 1}, 4},
		{"hole", Ack{RPC: 5, Epoch: 3, Seq: 0x3cd, Len: 40, Window: 1<<40 - 1 - 1<<20}, 4},
		{"all lost", Ack{Seq: 7, Len: 1}, 4},
		{"high RPC", Ack{RPC: 8, Epoch: 7, Seq: 7}, 6},
		{"missing baseline", Ack{RPC: 1, ResetReason: ErrBaselineMissing, Seq: 7}, 6},
		{"desync", Ack{RPC: 1, ResetReason: ErrDesync, Seq: 7, Len: 2, Window: 1}, 7},
		{"nothing yet", Ack{RPC: 1, None: true}, 3},
		{"nothing yet, reset requested", Ack{RPC: 1, None: true, ResetReason: ErrBaselineMissing}, 3},
	} {
		b := c.a.Append(nil)
		if a, rest, err := ParseAck(b); err != nil || a != c.a || len(rest) > 0 || len(b) != c.size {
			t.Errorf("%s: % x is %+v, %v", c.name, b, a, err)
		}
	}
	for _, a := range []seq.Ack{{Reset: 3}, {Epoch: 8}} {
		if a, _, err := ParseAck(a.Append(nil)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// TestAcksOfBatches verifies that an ack of payloads of several frames is as short as one of
// payloads of one frame where none is lost, and that the encoder learns which are lost where some
// are, whether payloads repeat frames or not.
func TestAcksOfBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		redundancy := rapid.SampledFrom([]int{RedundancyOff, 1, 2}).Draw(t, "redundancy")
		p := newPair(t, smallSchema(t), EncoderConfig{Redundancy: redundancy}, DecoderConfig{})
		p.exchange(t)
		p.exchange(t)
		lost := uint64(0)
		for i := range 60 {
			for range rapid.IntRange(0, 3).Draw(t, "held") {
				must(t, p.enc.Hold(p.frame))
			}
			p.send(t)
			if rapid.IntRange(0, 5).Draw(t, "lose") == 0 {
				lost++
				continue
			}
			p.receive(t)
			if i%3 != 0 {
				continue
			}
			b := p.dec.AppendAck(nil)
			a, _, err := ParseAck(b)
			must(t, err)
			must(t, p.enc.Ack(a))
			if s := p.enc.DeliveryStats(); s.Lost != lost {
				t.Fatalf("%d payloads are lost, want %d", s.Lost, lost)
			}
			if lost == 0 && redundancy == RedundancyOff && len(b) != 2 {
				t.Fatalf("%+v has %d bytes", a, len(b))
			}
		}
	})
}

// TestOldAcks verifies that an ack with 10 bits of the sequence is never taken for one of a newer
// payload if acks of fewer than 1024-63 newer payloads overtook it, however many frames were sent
// since.
func TestOldAcks(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBool})
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t, s, EncoderConfig{}, DecoderConfig{})
		p.exchange(t)
		for range rapid.IntRange(1, 1100).Draw(t, "acked before") {
			p.exchange(t)
		}
		p.send(t)
		p.receive(t)
		n := p.enc.next - 1
		old, _, err := ParseAck(p.dec.AppendAck(nil))
		must(t, err)
		overtaken := rapid.IntRange(0, 1<<10-ackWindow-1).Draw(t, "overtaken by")
		for range overtaken {
			p.exchange(t)
		}
		for range rapid.SampledFrom([]int{0, 20, 70, 150}).Draw(t, "sent") {
			p.send(t)
		}
		w := old.wire()
		if w.Width() != 10 {
			t.Fatalf("%+v is not short", old)
		}
		must(t, p.enc.Ack(old))
		if want := n + uint64(overtaken); p.enc.base != want || p.enc.epoch != 0 {
			t.Fatalf("baseline %d in epoch %d, want %d", p.enc.base, p.enc.epoch, want)
		}
	})
}

func TestAckRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ack{
			RPC:         rapid.Uint8().Draw(t, "rpc"),
			Epoch:       rapid.Uint8Max(wire.EpochMask).Draw(t, "epoch"),
			ResetReason: rapid.SampledFrom(resetReasons).Draw(t, "reason"),
			None:        rapid.Bool().Draw(t, "none"),
		}
		if !a.None {
			a.Whole = rapid.Bool().Draw(t, "whole")
			a.Len = rapid.IntRange(0, ackWindow).Draw(t, "len")
			a.Window = rapid.Uint64Max(seq.Mask(uint64(a.Len))).Draw(t, "window")
			w := a.wire()
			a.Seq = rapid.Uint16().Draw(t, "seq") & uint16(seq.Mask(uint64(w.Width())))
		}
		rest := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "rest")
		b := a.Append(nil)
		got, after, err := ParseAck(append(b, rest...))
		if err != nil || got != a || !bytes.Equal(after, rest) || len(b) > seq.MaxAck {
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

// FuzzParseAck passes acks to an encoder, which encodes a frame before each message of acks: the
// input has the codec and the redundancy, the number of frames that were encoded before, and
// entries. An ack that is parsed stays the same when it is appended and parsed again. With rle, a
// decoder never delivers a frame that was not sent.
func FuzzParseAck(f *testing.F) {
	const history = 70 // more than a ring
	s := mustSchema(f, schema.Field{Name: "X", Kind: schema.KindScalar, Resolution: 1, Count: 3})
	values := func(seq uint64) []int32 { return []int32{int32(seq), int32(seq * seq), 5} }
	x := corpus.Target{Parser: "ack", Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		if len(in) < 2 {
			return
		}
		codec := RLE
		if in[0]%2 == 1 {
			codec = Adaptive
		}
		p := newPair(t, s, EncoderConfig{Codec: codec, Redundancy: cmp.Or(int(in[0]/2%(MaxRedundancy+1)), -1)}, DecoderConfig{})
		encode := func() {
			copy(p.frame.Ints, values(p.enc.next))
			p.send(t)
			out, _ := p.dec.Decode(p.payload)
			for _, d := range out {
				if codec == RLE && !slices.Equal(d.Frame.Ints, values(d.Seq)) {
					t.Fatalf("frame %d is %v", d.Seq, d.Frame.Ints)
				}
			}
		}
		for range int(in[1]) % (history + 1) {
			encode()
		}
		for b := range entries.All(in[2:]) {
			encode()
			for len(b) > 0 {
				a, rest, err := ParseAck(b)
				if err != nil {
					break
				}
				if len(rest) >= len(b) {
					t.Fatal("nothing was read")
				}
				if again, _, err := ParseAck(a.Append(nil)); err != nil || again != a {
					t.Fatalf("%+v comes back as %+v, %v", a, again, err)
				}
				_ = p.enc.Ack(a)
				b = rest
			}
		}
		encode()
	}}
	x.Run(f)
}
