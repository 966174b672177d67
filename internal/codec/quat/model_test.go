package quat

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// TestLargestModel verifies that indices round-trip with any prediction, and cost almost nothing
// if the predictions are right.
func TestLargestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			index, doubt int
			q            Fixed
		}
		g := NewQuantizer(-511, 511)
		right := rapid.Bool().Draw(t, "right")
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			draw := rapid.Int64Range(-3*One, 3*One)
			var it item
			it.q.Exp(draw.Draw(t, "x"), draw.Draw(t, "y"), draw.Draw(t, "z"))
			it.index, it.doubt = rapid.IntRange(0, 3).Draw(t, "index"), rapid.IntRange(0, Doubts-1).Draw(t, "doubt")
			if right {
				it.index, it.doubt = 3, 0
				it.q = Fixed{1000, 2000, 3000, One}
			}
			return it
		}), 300, 300).Draw(t, "orientations")
		walk := func(c *rangecoder.Coder) {
			var m LargestModel
			m.Init()
			for i, it := range items {
				index := it.index
				if c.Decoding {
					index = 0
				}
				got, other := m.Code(c, index, &it.q, &g, it.doubt)
				if got != it.index || right && other {
					t.Fatalf("orientation %d: got %d, want %d", i, got, it.index)
				}
			}
		}
		c := rangecoder.NewCoder(rangecoder.MaxCount, false)
		c.Enc.Reset(nil, 0)
		walk(&c)
		out := c.Enc.Finish()
		if right && len(out) > 3 {
			t.Fatalf("%d bytes say that all is as predicted", len(out))
		}
		c = rangecoder.NewCoder(rangecoder.MaxCount, true)
		c.Dec.Reset(out, 0)
		walk(&c)
	})
}
