package rangecoder_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// TestNumbers verifies the round trip of numbers, counts, decisions and raw bits with any model
// state. One visitor encodes and decodes.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			level, sign int
			v           int64
		}
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			v := rapid.Int64Range(-1<<32+1, 1<<32-1).Draw(t, "v") >> rapid.IntRange(0, 32).Draw(t, "shift")
			return item{rapid.IntRange(0, rangecoder.Levels-1).Draw(t, "level"), rapid.IntRange(0, rangecoder.Signs-1).Draw(t, "sign"), v}
		}), 0, 60).Draw(t, "numbers")
		walk := func(c *rangecoder.Coder) {
			var m rangecoder.IntModel
			var lengths rangecoder.LengthModel
			var chances [2]rangecoder.Prob
			m.Init()
			lengths.Init(9)
			rangecoder.Fill(chances[:], rangecoder.Half, 0)
			for i, it := range items {
				v, odd, low := it.v, it.v&1 != 0, uint64(it.v)&255
				if c.Decoding {
					v, odd, low = 0, false, 0
				}
				if got := c.Int(&m, it.level, it.sign, v); got != it.v {
					t.Fatalf("number %d: got %d, want %d", i, got, it.v)
				}
				count := uint64(max(it.v, -it.v))
				if got := c.Uint(&lengths, 9, uint64(max(v, -v))); got != count {
					t.Fatalf("count %d: got %d, want %d", i, got, count)
				}
				if got := c.Bit(&chances[i&1], odd); got != (it.v&1 != 0) {
					t.Fatalf("decision %d: got %t", i, got)
				}
				if got := c.Raw(low, 8); got != uint64(it.v)&255 {
					t.Fatalf("raw bits %d: got %d", i, got)
				}
			}
		}
		slowest := rapid.Uint16Max(rangecoder.MaxCount).Draw(t, "slowest")
		c := rangecoder.NewCoder(slowest, false)
		c.Enc.Reset(nil, 0)
		walk(&c)
		out := c.Enc.Finish()
		c = rangecoder.NewCoder(slowest, true)
		c.Dec.Reset(out, 0)
		walk(&c)
		if !c.Dec.Complete() {
			t.Fatalf("% x is not complete", out)
		}
	})
}

// TestNumbersBits bounds the size of numbers of a known scale, before and after adaptation:
// noise of width s has an entropy of log2(s sqrt(2 pi e)) bits.
func TestNumbersBits(t *testing.T) {
	for _, width := range []float64{4, 60, 1000} {
		var m rangecoder.IntModel
		m.Init()
		c := rangecoder.NewCoder(rangecoder.MaxCount, false)
		c.Enc.Reset(nil, 0)
		r := rand.New(rand.NewPCG(1, 2))
		level := rangecoder.Level(int64(256 * math.Log2(width*2/3))) // half of the magnitudes are below 2/3 of it
		want, start := math.Log2(width*math.Sqrt(2*math.Pi*math.E)), 0.0
		const n, early = 6000, 100
		for i := range n {
			if i == early {
				start = c.Enc.Cost()
			}
			c.Int(&m, level, 0, int64(math.Round(r.NormFloat64()*width)))
		}
		if got := start / early; got < want-.3 || got > want+1 {
			t.Errorf("width %v: %.2f bits at first, want about %.2f", width, got, want)
		}
		if got := (c.Enc.Cost() - start) / (n - early); got < want-.1 || got > want+.2 {
			t.Errorf("width %v: %.2f bits, want about %.2f", width, got, want)
		}
	}
}

// TestChance verifies that a probability converges to the frequency of a decision and never
// reaches 0 or 1.
func TestChance(t *testing.T) {
	for _, share := range []float64{0, .01, .3, .5, .99, 1} {
		r := rand.New(rand.NewPCG(1, 2))
		p, sum := rangecoder.Prob{P: rangecoder.Half}, 0.0
		c := rangecoder.NewCoder(60, false)
		c.Enc.Reset(nil, 0)
		const n = 4600
		for range n {
			c.Bit(&p, r.Float64() < share)
			if sum += float64(p.P) / rangecoder.Scale; p.P == 0 {
				t.Fatal("a decision is impossible")
			}
		}
		if off := sum/n - share; off < -.06 || off > .06 {
			t.Errorf("the chance is %.3f in the mean, want %.3f", sum/n, share)
		}
	}
}
