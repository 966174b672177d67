package rpcdelta

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestShorterIsSent verifies that a delta, with its header, is never larger than the frame without
// a baseline.
func TestShorterIsSent(t *testing.T) {
	for _, codec := range Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkShorterIsSent(t, codec) })
		})
	}
}

func checkShorterIsSent(t *rapid.T, codec Codec) {
	pick := schematest.FromRapid(t)
	p := newPair(t, pick.Schema(), EncoderConfig{Codec: codec}, DecoderConfig{})
	for range 5 {
		pick.Frame(p.s, p.frame, p.delivered)
		coded, _, _ := p.enc.coder.encode(nil, &payload{Payload: adaptive.Payload{Frames: []*schema.Frame{p.frame}, Newest: p.enc.next}})
		keyframe := 8 * (wire.LongHeader + len(coded))
		info := p.exchange(t)
		h := p.header(t) // a hash is extra
		if sent := info.HeaderBits + info.PayloadBits + 8*(h.UncheckedSize()-h.Size()); sent > keyframe {
			t.Fatalf("%+v in %d bits, but %d without a baseline", info, sent, keyframe)
		}
	}
}

// TestOverflowIsKeyframe verifies that rle sends a keyframe if a difference does not fit.
func TestOverflowIsKeyframe(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "Wide", Kind: schema.KindVec2, Resolution: 1, Min: new(float64(-1<<31 + 1)), Max: new(float64(1<<31 - 1))})
	p := newPair(t, s, EncoderConfig{Codec: RLE}, DecoderConfig{})
	p.frame.Ints[0] = -1 << 30
	p.exchange(t)
	p.frame.Ints[0] = 1<<31 - 1
	if info := p.exchange(t); info.Kind != Keyframe || info.BaselineAge != 0 {
		t.Errorf("%+v, want an keyframe", info)
	}
}

// TestHashPasses verifies that a due hash does not prevent a small RPC from sending deltas.
func TestHashPasses(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "X", Kind: schema.KindScalar, Resolution: 1}, schema.Field{Name: "B", Kind: schema.KindUint, Width: 8})
	p := newPair(t, s, EncoderConfig{Codec: RLE}, DecoderConfig{})
	deltas := 0
	for i := range int32(600) {
		p.frame.Ints[0] = 10 * i
		if p.exchange(t).Kind == Delta {
			deltas++
		}
	}
	if deltas != 599 {
		t.Errorf("%d of 600 frames are deltas", deltas)
	}
}

// TestHashLeavesRoom verifies that a due hash is left out if the frame fits only without it.
func TestHashLeavesRoom(t *testing.T) {
	p := newPair(t, mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: new(1300.0)}), EncoderConfig{Codec: RLE}, DecoderConfig{})
	p.exchange(t)
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, 1183)
	for range 200 {
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		must(t, p.s.SetBytes(p.frame, 0, b))
		if info := p.exchange(t); p.header(t).Checked {
			t.Fatalf("%+v: the hash fits, so this shows nothing", info)
		}
	}
}
