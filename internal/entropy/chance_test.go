package entropy_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

// TestChance has a chance find how likely a decision is, and never take anything for impossible.
func TestChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c, sum := entropy.Chance{P: entropy.Half}, 0.0
		const n = 4000
		for range 600 {
			c.Learn(r.Float64() < share)
		}
		for range n {
			c.Learn(r.Float64() < share)
			sum += float64(c.P) / entropy.Scale
			if c.P == 0 {
				t.Fatal("a decision is impossible")
			}
		}
		if off := sum/n - share; off < -.06 || off > .06 {
			t.Fatalf("the chance is %.3f in the mean, want %.3f", sum/n, share)
		}
	})
}
