package replication

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlan compares the ages of the chosen baselines with the best that any choice gives.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type client struct{ step, distance int }
		clients := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) client {
			return client{rapid.IntRange(1, 2).Draw(rt, "step"), rapid.IntRange(1, 6).Draw(rt, "distance")}
		}), 1, 30).Draw(rt, "clients")
		p := plan{room: maxEncodings}
		p.reset()
		for _, c := range clients {
			p.add(c.step, 1<<c.distance, 0)
		}
		p.choose()
		if n := bits.OnesCount64(p.chosen[1]) + bits.OnesCount64(p.chosen[2]); n > maxEncodings {
			rt.Fatalf("%d encodings", n)
		}
		age := func(chosen [2]uint64) (sum int) {
			for _, c := range clients {
				older := chosen[c.step-1] >> c.distance
				if older == 0 {
					return 1 << 30
				}
				sum += bits.TrailingZeros64(older)
			}
			return sum
		}
		best := 1 << 30
		for set := range uint64(1 << 12) {
			if bits.OnesCount64(set) <= maxEncodings {
				best = min(best, age([2]uint64{set << 1 & 0x7e, set >> 6 << 1}))
			}
		}
		if got := age([2]uint64{p.chosen[1], p.chosen[2]}); got != best {
			rt.Fatalf("%v: the ages add up to %d, want %d", clients, got, best)
		}
	})
}

// TestPlanOfBareBaselines checks that clients that have just joined share the baseline that most of
// them have.
func TestPlanOfBareBaselines(t *testing.T) {
	p := plan{room: maxEncodings}
	p.reset()
	for _, bare := range []uint64{0b0110_0000, 0b0011_0000, 0b1110_0000} {
		p.add(1, 0, bare)
	}
	p.choose()
	if want := uint64(1 << 5); p.chosen[0] != want {
		t.Errorf("%b is chosen, want %b", p.chosen[0], want)
	}
	if slices.ContainsFunc(p.chosen[1:], func(c uint64) bool { return c != 0 }) {
		t.Errorf("%v", p.chosen)
	}
}
