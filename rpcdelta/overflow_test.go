package rpcdelta

import (
	"testing"

	"github.com/uplink-rpc/uplink/schema"
)

// TestOverflowIsKeyframe verifies that rle sends a keyframe if a difference does not fit.
func TestOverflowIsKeyframe(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "Wide", Kind: schema.KindVec2, Resolution: 1, Min: number(-1<<31 + 1), Max: number(1<<31 - 1)})
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
