package ratelimit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
)

// TestBound checks that no more than the burst and the refill passes in any period, that nothing is
// rejected that would not exceed this, and that Has and FullAt agree.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ratelimit.Rate{
			PerSecond: rapid.Float64Range(0.1, 1000).Draw(t, "per second"),
			Burst:     rapid.Float64Range(1, 1000).Draw(t, "burst"),
		}
		type taken struct {
			at time.Duration
			n  float64
		}
		var b ratelimit.Bucket
		var all []taken
		now := time.Duration(0)
		room := func(more float64) (least float64) { // over all stretches that end now
			least = r.Burst - more
			sum := more
			for i := len(all) - 1; i >= 0; i-- {
				sum += all[i].n
				least = min(least, r.Burst+(now-all[i].at).Seconds()*r.PerSecond-sum)
			}
			return least
		}
		const rounding = 1e-6
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")) >> rapid.IntRange(0, 20).Draw(t, "shift")
			n := float64(rapid.IntRange(1, 20).Draw(t, "n"))
			left := room(n)
			has, full := b.Has(now, r, n), now >= b.FullAt(r)
			ok := b.Take(now, r, n)
			if has != ok || full && ok != (n <= r.Burst) {
				t.Fatalf("take %v at %v: %v, has %v, full %v", n, now, ok, has, full)
			}
			if ok && left < -rounding || !ok && left > rounding {
				t.Fatalf("take %v at %v: %v with room for %v more", n, now, ok, left)
			}
			if ok {
				all = append(all, taken{now, n})
			}
		}
	})
}

// TestBackward sets the clock back, which refills nothing.
func TestBackward(t *testing.T) {
	r := ratelimit.Rate{PerSecond: 1, Burst: 2}
	const now = 100 * time.Second
	var b ratelimit.Bucket
	for i, step := range []struct {
		at   time.Duration
		want bool
	}{{0, true}, {0, true}, {0, false}, {-50 * time.Second, false}, {0, false}, {time.Second, true}, {time.Second, false}} {
		if got := b.Take(now+step.at, r, 1); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
