package rangecoder_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// TestChance has a chance find how likely a decision is, and never take anything for impossible.
func TestChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		p, sum := rangecoder.Prob{P: rangecoder.Half}, 0.0
		c := rangecoder.NewCoder(rapid.Uint16Range(60, rangecoder.MaxCount).Draw(t, "slowest"), false)
		c.Enc.Reset(nil, 0)
		const n = 4000
		for range 600 {
			c.Bit(&p, r.Float64() < share)
		}
		for range n {
			c.Bit(&p, r.Float64() < share)
			sum += float64(p.P) / rangecoder.Scale
			if p.P == 0 {
				t.Fatal("a decision is impossible")
			}
		}
		if off := sum/n - share; off < -.06 || off > .06 {
			t.Fatalf("the chance is %.3f in the mean, want %.3f", sum/n, share)
		}
	})
}
