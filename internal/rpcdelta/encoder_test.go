package rpcdelta

import (
	"errors"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestRejectedFrames verifies that a frame that cannot be sent is an error that names the problem,
// and that it neither uses a sequence number nor affects held frames.
func TestRejectedFrames(t *testing.T) {
	s := mustSchema(t,
		schema.Field{Name: "A", Kind: schema.KindAngle},
		schema.Field{Name: "B", Kind: schema.KindBytes, Max: new(4000.0)})
	p := newPair(t, s, EncoderConfig{}, DecoderConfig{})
	p.frame = s.NewFrame()
	p.exchange(t)
	large, wide := s.NewFrame(), s.NewFrame()
	for i := range 3000 {
		large.Bytes[0] = append(large.Bytes[0], byte(i*i>>3))
	}
	wide.Ints[0] = 1 << 20
	for range MaxHeld {
		for want, f := range map[string]*schema.Frame{
			"frame too large: Test: 30": large, "value 1048576, want 0 to 65535": wide, schema.ErrFrame.Error(): {},
		} {
			out, info, err := p.enc.AppendFrame([]byte("before"), f)
			if err == nil || !strings.Contains(err.Error(), want) || string(out) != "before" || info != (Info{}) {
				t.Errorf("%q, %+v, %v, want %s", out, info, err, want)
			}
			err = p.enc.Hold(f)
			if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrTooLarge) != (f == large) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		must(t, p.enc.Hold(p.frame))
	}
	if err := p.enc.Hold(p.frame); err == nil || p.enc.Held() != MaxHeld {
		t.Errorf("%v with %d frames held", err, p.enc.Held())
	}
	if err := p.enc.Ack(Ack{Seq: 1}); !errors.Is(err, ErrAck) {
		t.Errorf("an ack of a frame that is held: %v", err)
	}
	out, info := p.enc.AppendHeld(nil)
	if info.Seq != MaxHeld || p.enc.Held() != 0 {
		t.Errorf("%+v, %d held", info, p.enc.Held())
	}
	for seq := range uint16(MaxHeld) {
		if err := p.enc.Ack(Ack{Seq: seq + 1}); (err == nil) != (seq+1 == MaxHeld) {
			t.Errorf("an ack of %d: %v", seq+1, err)
		}
	}
	if got, err := p.dec.Decode(out); err != nil || len(got) != MaxHeld {
		t.Errorf("%d frames, %v", len(got), err)
	}
	if out, info := p.enc.AppendHeld([]byte("x")); string(out) != "x" || info != (Info{}) {
		t.Errorf("%q, %+v of no frames", out, info)
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
		{EncoderConfig{RedundancyBytes: -1}, "RedundancyBytes of -1"},
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
