package client

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
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
	return 60*l.frame*(1+0.6*r) + 60/float64(lim.every)*l.header
}

// drive simulates seconds in ticks, and returns the level after each second.
func drive(b *budget, l *load, now *time.Time, sent *traffic, seconds int, rng *rand.Rand) (levels []int) {
	const tick = time.Second / 60
	for range seconds {
		for end := now.Add(time.Second); now.Before(end); {
			*now = now.Add(tick)
			noise := 1 + l.noise*(2*rng.Float64()-1)
			lim := b.limits()
			sent.bits += uint64(l.rate(lim) * tick.Seconds() * noise)
			sent.overhead += uint64(248 * noise / float64(lim.every))
			b.step(*now, *sent, min(l.redundancy, b.limits().redundancy))
		}
		levels = append(levels, b.level)
	}
	return levels
}

// TestBudgetSettles checks that the rate is below the limit after a few seconds, if that is
// possible, and remains there with few changes of the level.
func TestBudgetSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		l := load{frame: 20 + 200*rng.Float64(), header: 264, redundancy: rng.IntN(rpcdelta.MaxRedundancy + 1), noise: 0.05}
		b := &budget{limit: 3000 + 60_000*rng.Float64()}
		now, sent := time.Unix(1e9, 0), traffic{1e6, 1e5}
		first := b.limits()
		if first.redundancy != rpcdelta.MaxRedundancy || first.every != 1 {
			t.Fatalf("at first %+v", first)
		}
		drive(b, &l, &now, &sent, 12, rng)
		over := b.over
		levels := drive(b, &l, &now, &sent, 300, rng)
		what := fmt.Sprintf("%+v, limit %.0f: levels %v", l, b.limit, levels[:40])
		lowest := l.rate(limits{0, MaxSendEvery})
		switch {
		case lowest > b.limit*1.05: // not possible
			if levels[len(levels)-1] != maxLevel || b.over == over {
				t.Errorf("%s: %d bits over", what, b.over-over)
			}
		case lowest < b.limit*0.95:
			if share := float64(b.over-over) / (300 * b.limit); share > 0.01 {
				t.Errorf("%s: %.2f %% above the limit", what, 100*share)
			}
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

// TestBudgetOrder checks that the budget first reduces redundancy, then datagrams, and restores
// them in the reverse order.
func TestBudgetOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	l := load{frame: 60, header: 264, redundancy: 3}
	b := &budget{limit: 1e6}
	now, sent := time.Unix(1e9, 0), traffic{}
	for range 12 {
		b.limit *= 0.6
		drive(b, &l, &now, &sent, 10, rng)
	}
	if lim := b.limits(); lim.every != MaxSendEvery || lim.redundancy != 0 || b.over == 0 {
		t.Fatalf("%+v at a limit of %.0f", lim, b.limit)
	}
	var downs, ups []limits
	b.level = 0
	for level := range maxLevel + 1 {
		b.level = level
		downs = append(downs, b.limits())
	}
	for i := range downs[1:] {
		if a, z := downs[i], downs[i+1]; a.every > 1 && a.redundancy > 0 || l.rate(a) < l.rate(z) || a == z {
			t.Errorf("level %d is %+v, the next %+v", i, a, z)
		}
	}
	b.limit = 1e6
	over := b.over
	ups = append(ups, b.limits())
	for range 200 {
		drive(b, &l, &now, &sent, 1, rng)
		if lim := b.limits(); lim != ups[len(ups)-1] {
			ups = append(ups, lim)
		}
	}
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
	b := &budget{limit: 1.25 * usual.rate(limits{redundancy: 3, every: 1})}
	now, sent := time.Unix(1e9, 0), traffic{}
	drive(b, &usual, &now, &sent, 5, rng)
	drive(b, &burst, &now, &sent, 8, rng)
	if lim := b.limits(); lim.redundancy != 0 || lim.every == 1 {
		t.Fatalf("%+v in a burst", lim)
	}
	levels := drive(b, &usual, &now, &sent, 60, rng)
	if lim := b.limits(); lim.redundancy < 3 || lim.every != 1 {
		t.Errorf("%+v after the burst: levels %v", lim, levels)
	}
}

// TestBudgetPatience checks that a level that fails is tried less and less often.
func TestBudgetPatience(t *testing.T) {
	b := &budget{limit: 10_000, level: maxLevel}
	now, sent, raises := time.Unix(1e9, 0), traffic{}, 0
	b.step(now, traffic{}, 0)
	for range 1000 {
		now = now.Add(time.Second)
		before := b.level
		rate := 5000.0 // seems low enough for the level below
		if b.level < maxLevel {
			rate = 12_000
		}
		sent.bits += uint64(rate)
		b.step(now, sent, 0)
		if b.level < before {
			raises++
		}
	}
	if raises > 25 || raises < 10 {
		t.Errorf("%d tries in 1000 s", raises)
	}
}

// TestBudgetGaps checks that nothing happens without a limit, or after a time without a connection.
func TestBudgetGaps(t *testing.T) {
	now := time.Unix(1e9, 0)
	var none budget
	for i := range 100 {
		if none.step(now.Add(time.Duration(i)*time.Second), traffic{bits: math.MaxUint64 / 2}, 7) || none.due(now) {
			t.Fatal("there is no limit")
		}
	}
	b := budget{limit: 1000, level: 5}
	b.step(now, traffic{}, 0)
	for i := range 10 {
		now = now.Add(time.Minute)
		if b.step(now, traffic{bits: uint64(i)}, 0) || b.level != 5 || b.over != 0 {
			t.Fatalf("%+v", b)
		}
	}
}
