package quat

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// TestGrain has rows come back from the orientations that they stand for, which are of length 1.
func TestQuantizer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Int32Range(-1<<14, 1<<14).Draw(t, "lo")
		hi := lo + rapid.Int32Range(2, 1<<15).Draw(t, "span")
		g := NewQuantizer(lo, hi)
		row := []int32{rapid.Int32Range(0, 3).Draw(t, "index"), 0, 0, 0}
		for k := range row[1:] {
			row[1+k] = rapid.Int32Range(lo, hi).Draw(t, "component")
		}
		q := g.Unpack(row)
		sum, k := int64(0), 1
		for i, v := range q {
			sum += v * v
			if i == int(row[0]) {
				continue
			}
			if off := fixed.Abs(g.Pack(v) - int64(row[k])*16); off > 8 {
				t.Fatalf("component %d of %v is %d/16 off", k, row, off)
			}
			k++
		}
		if largest := q[row[0]]; largest < 0 || largest > 0 && fixed.Abs(sum-One*One) > 4*One {
			t.Fatalf("%v is %v, of length^2 %d/2^32", row, q, sum)
		}
	})
}

// TestLargest has indices come through, whatever was predicted, and cost next to nothing where
// predictions are right.
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
			it := item{q: Exp([3]int64{draw.Draw(t, "x"), draw.Draw(t, "y"), draw.Draw(t, "z")})}
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
