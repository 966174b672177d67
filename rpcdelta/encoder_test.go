package rpcdelta

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// TestTooLarge verifies that a frame above the limit is an error with its size, and that the stream
// continues.
func TestTooLarge(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: number(4000)})
	p := newPair(t, s, EncoderConfig{}, DecoderConfig{})
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	p.frame.Bytes[0] = p.frame.Bytes[0][:0]
	p.exchange(t)
	large := s.NewFrame()
	large.Bytes[0] = noise[:2000]
	dst := []byte("before")
	for range 3 {
		got, info, err := p.enc.AppendFrame(dst, large)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "at most 1197") || !strings.Contains(err.Error(), "Test: 20") {
			t.Fatal(err)
		}
		if !bytes.Equal(got, dst) || info != (Info{}) {
			t.Errorf("%q, %+v", got, info)
		}
	}
	p.frame.Bytes[0] = append(p.frame.Bytes[0], 1, 2, 3)
	if info := p.exchange(t); info.Seq != 1 {
		t.Errorf("%+v, want sequence 1", info)
	}
}

// TestLargestFits verifies that a frame that fits without a baseline is sent, even if a hash is
// due.
func TestLargestFits(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindFixed, Size: 20}, schema.Field{Name: "C", Kind: schema.KindScalar, Resolution: 1})
	// Without baseline: five bytes of header, two of C, 21 of B.
	for _, size := range []int{wire.LongHeader + 2 + 21, wire.LongHeader + 2 + 21 + 1, wire.LongHeader + 2 + 21 + 2} {
		p := newPair(t, s, EncoderConfig{MaxPayload: size}, DecoderConfig{})
		for i := range 200 {
			p.frame.Ints[0] = 100 + int32(i%2) // a byte less as a delta
			for k := range p.frame.Bytes[0] {
				p.frame.Bytes[0][k] = byte(i*i*(k+1)) ^ byte(k*k)
			}
			if info := p.exchange(t); info.HeaderBits+info.PayloadBits > 8*size {
				t.Fatalf("%+v, want at most %d bytes", info, size)
			}
		}
	}
}

// TestWrongFrames verifies that the encoder rejects a frame of another shape or with a value out of
// range, and that the rejected frame does not use a sequence number.
func TestWrongFrames(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "U", Kind: schema.KindUint, Width: 4})
	p := newPair(t, s, EncoderConfig{}, DecoderConfig{})
	p.exchange(t)
	out, _, err := p.enc.AppendFrame(nil, &schema.Frame{})
	if !errors.Is(err, schema.ErrFrame) || len(out) != 0 {
		t.Errorf("another shape: %x, %v", out, err)
	}
	var r *schema.RangeError
	if out, _, err = p.enc.AppendFrame(nil, &schema.Frame{Ints: []int32{16}}); !errors.As(err, &r) || len(out) != 0 {
		t.Errorf("out of range: %x, %v", out, err)
	}
	if info := p.exchange(t); info.Seq != 1 {
		t.Errorf("%+v, want sequence 1", info)
	}
}

func TestConfigErrors(t *testing.T) {
	s := smallSchema(t)
	for _, c := range []struct {
		enc  EncoderConfig
		want string
	}{
		{EncoderConfig{Ring: 1}, "Ring of 1 frames"},
		{EncoderConfig{Ring: 257}, "Ring of 257 frames"},
		{EncoderConfig{PeerRing: -1}, "PeerRing of -1 frames"},
		{EncoderConfig{RPC: 256}, "RPC number 256"},
		{EncoderConfig{RedundancyBytes: -1}, "RedundancyBytes is -1"},
		{EncoderConfig{Delivery: 1}, "Delivery of 1, want 0.5 to 0.99999"},
		{EncoderConfig{Codec: 99}, "codec"},
		{EncoderConfig{MaxPayload: 7}, "7 bytes"},
	} {
		if _, err := NewEncoder(s, c.enc); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.enc, err)
		}
		dc := DecoderConfig{Codec: c.enc.Codec, RPC: c.enc.RPC, Ring: c.enc.Ring}
		if dc == (DecoderConfig{}) {
			continue
		}
		if _, err := NewDecoder(s, dc); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", dc, err)
		}
	}
	if _, err := ParseCodec("zip"); err == nil {
		t.Error("there is a codec zip")
	}
	if c, err := ParseCodec(RLE.String()); c != RLE || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestHashLeavesRoom verifies that a due hash is left out if the frame fits only without it.
func TestHashLeavesRoom(t *testing.T) {
	p := newPair(t, mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: number(1300)}), EncoderConfig{Codec: RLE}, DecoderConfig{})
	p.exchange(t)
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, 1183)
	for range 200 {
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		if err := p.s.SetBytes(p.frame, 0, b); err != nil {
			t.Fatal(err)
		}
		if info := p.exchange(t); p.header(t).Checked {
			t.Fatalf("%+v: the hash fits, so this shows nothing", info)
		}
	}
}
