package client

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// load is the traffic of a connection: 60 calls per second, each payload with redundancy.
type load struct {
	frame, header float64 // bits
	redundancy    int     // that the packet loss requires
	noise         float64 // share
}

// rate returns the bit rate under limits.
func (l *load) rate(lim limits) float64 {
	r := float64(min(l.redundancy, lim.redundancy))
	return 60*l.frame*(1+0.6*r) + 60/lim.every*l.header
}

// drive simulates seconds and returns the level after each.
func (l *load) drive(b *budget, seconds int, rng *rand.Rand) (levels []int) {
	for range seconds {
		lim, noise := b.limits(), 1+l.noise*(2*rng.Float64()-1)
		sent := traffic{limited: uint64(l.rate(lim) * noise), overhead: uint64(60 * 248 * noise / lim.every)}
		b.step(time.Second, sent, min(l.redundancy, lim.redundancy))
		levels = append(levels, b.level)
	}
	return levels
}

// TestBudgetSettles checks that the rate is below the limit after a few seconds, if that is
// possible, and remains there with few changes of the level.
func TestBudgetSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		l := load{frame: 20 + 200*rng.Float64(), header: 264, noise: 0.006}
		l.redundancy = rng.IntN(rpcdelta.MaxRedundancy + 1)
		b := &budget{configured: 3000 + 60_000*rng.Float64()}
		if b.limits() != (limits{rpcdelta.MaxRedundancy, 1}) {
			t.Fatalf("at first %+v", b.limits())
		}
		l.drive(b, 12, rng)
		before := b.over
		levels := l.drive(b, 300, rng)
		what, over := fmt.Sprintf("%+v, limit %.0f: levels %v", l, b.configured, levels[:40]), b.over-before
		switch lowest := l.rate(limits{0, maxEvery}); {
		case lowest > b.configured*1.05: // not possible
			if levels[len(levels)-1] != maxLevel || over == 0 {
				t.Errorf("%s: %d bits over", what, over)
			}
		case lowest < b.configured*0.95 && float64(over) > 0.01*300*b.configured:
			t.Errorf("%s: %d bits above the limit", what, over)
		}
		changes := 0
		for i := range levels[1:] {
			if levels[i] != levels[i+1] {
				changes++
			}
		}
		if changes > 60 {
			t.Errorf("%s: %d changes in 300 s", what, changes)
		}
	}
}

// TestBudgetOrder checks that each level of the budget reduces redundancy or datagrams, and that
// they are restored in the reverse order.
func TestBudgetOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	l := load{frame: 60, header: 264, redundancy: 3}
	b := &budget{configured: 1e6}
	for range 12 {
		b.configured *= 0.6
		l.drive(b, 10, rng)
	}
	if b.limits() != (limits{0, maxEvery}) || b.over == 0 {
		t.Fatalf("%+v at a limit of %.0f", b.limits(), b.configured)
	}
	var downs, ups []limits
	for level := range maxLevel + 1 {
		downs = append(downs, (&budget{level: level}).limits())
	}
	for i := range downs[1:] {
		if a, z := downs[i], downs[i+1]; z.redundancy > a.redundancy || z.every < a.every || l.rate(a) < l.rate(z) || a == z {
			t.Errorf("level %d is %+v, the next %+v", i, a, z)
		}
	}
	b.configured = 1e6
	over := b.over
	for range 200 {
		ups = append(ups, b.limits())
		l.drive(b, 1, rng)
	}
	ups = slices.Compact(ups)
	slices.Reverse(ups)
	if !slices.Equal(ups, downs) || b.over != over {
		t.Errorf("back by %+v, want %+v", ups, downs)
	}
}

// TestBudgetReturns checks that redundancy is restored after a burst, even with little headroom:
// most of a connection's traffic is headers, of which redundant payloads have none.
func TestBudgetReturns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	usual := load{frame: 50, header: 264, redundancy: 3}
	burst := usual
	burst.frame = 800
	b := &budget{configured: 1.25 * usual.rate(limits{redundancy: 3, every: 1})}
	usual.drive(b, 5, rng)
	burst.drive(b, 8, rng)
	if lim := b.limits(); lim.redundancy != 0 || lim.every == 1 {
		t.Fatalf("%+v in a burst", lim)
	}
	levels := usual.drive(b, 60, rng)
	if lim := b.limits(); lim.redundancy < 3 || lim.every != 1 {
		t.Errorf("%+v after the burst: levels %v", lim, levels)
	}
}

// TestBudgetPatience checks that a level that fails is tried less and less often.
func TestBudgetPatience(t *testing.T) {
	b := &budget{configured: 10_000, level: maxLevel}
	raises := 0
	for range 1000 {
		before, sent := b.level, traffic{limited: 4000} // seems low enough for the level below
		if b.level < maxLevel {
			sent.limited = 12_000
		}
		if b.step(time.Second, sent, 0); b.level < before {
			raises++
		}
	}
	if raises > 25 || raises < 10 {
		t.Errorf("%d tries in 1000 s", raises)
	}
}

// TestBudgetGaps checks that nothing happens without a limit, or after a time without a connection.
func TestBudgetGaps(t *testing.T) {
	if none := (budget{}); none.step(time.Second, traffic{limited: 1 << 62}, 7) {
		t.Error("there is no limit")
	}
	b := budget{configured: 1000, level: 5}
	for range 10 {
		if b.step(2*time.Second, traffic{}, 0) || b.level != 5 {
			t.Fatalf("%+v", b)
		}
	}
}
