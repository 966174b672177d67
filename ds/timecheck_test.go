package ds

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
)

func newTimeCheck(t testing.TB, c TimeCheck) *timeCheck {
	typ, err := schema.Compile[testCall]("Move", 0)
	must(t, err)
	r := &rpc{schema: typ.Schema()}
	must(t, c.apply(r, nil))
	return r.time
}

const tick = time.Second / 60

// arrivals returns when the calls of ten minutes arrive. A clock runs at a speed; each call is late
// by up to 20 ms, one in ten is lost, and once a minute the client pauses for two seconds.
func arrivals(seed uint64, speed float64) (all []time.Duration) {
	random := rand.New(rand.NewPCG(seed, 1))
	newest := time.Duration(0)
	for at := time.Duration(0); at < 10*time.Minute; at += time.Duration(float64(tick) / speed) {
		if random.IntN(3600) == 0 {
			at += 2 * time.Second
		}
		arrived := at + time.Duration(random.Int64N(int64(20*time.Millisecond)))
		if newest = max(newest, arrived); random.IntN(10) > 0 {
			all = append(all, newest)
		}
	}
	return all
}

// TestHonestTime verifies that players whose clock differs by 200 ppm are not detected.
func TestHonestTime(t *testing.T) {
	for seed := range uint64(20) {
		var c clientTime
		check := newTimeCheck(t, TimeCheck{Resolve: true})
		for n, at := range arrivals(seed, 1.0002) {
			if ahead, drop, detected := c.call(check, time.Time{}.Add(time.Hour+at), tick); drop || detected {
				t.Fatalf("seed %d: call %d is %v ahead", seed, n, ahead)
			}
		}
	}
}

// TestFastTime verifies how soon a fast player is detected, and what it gains: without loss, and
// with calls as evenly spaced as those of an honest one.
func TestFastTime(t *testing.T) {
	for _, c := range []struct {
		speed float64
		soon  time.Duration
	}{{1.05, 6 * time.Second}, {1.1, 3 * time.Second}, {2, 300 * time.Millisecond}, {50, 50 * time.Millisecond}} {
		var clock clientTime
		check := newTimeCheck(t, TimeCheck{Resolve: true})
		simulated, first := time.Duration(0), time.Duration(0)
		for at := time.Duration(0); at < time.Minute; at += time.Duration(float64(tick) / c.speed) {
			_, drop, detected := clock.call(check, time.Time{}.Add(time.Hour+at), tick)
			if detected && first == 0 {
				first = at
			}
			if !drop {
				simulated += tick
			}
			if gain := simulated - at - at/1000; gain > defaultMargin+tick {
				t.Fatalf("speed %v: %v gained after %v", c.speed, gain, at)
			}
		}
		if first == 0 || first > c.soon {
			t.Errorf("speed %v: detected after %v, want %v", c.speed, first, c.soon)
		}
	}
}

// TestTimeGained verifies for any times of arrival and any simulated times that no interval of
// calls gains more than both margins.
func TestTimeGained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check := &timeCheck{TimeCheck: TimeCheck{MaxAhead: 100 * time.Millisecond, MaxBehind: 50 * time.Millisecond, Resolve: true}, field: -1}
		var clock clientTime
		now, gained, least := time.Duration(0), time.Duration(0), time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			passed := time.Duration(rapid.IntRange(0, 60).Draw(t, "passed")) * time.Millisecond
			delta := time.Duration(rapid.IntRange(0, 60).Draw(t, "delta")) * time.Millisecond
			now += passed
			_, drop, _ := clock.call(check, time.Time{}.Add(time.Hour+now), delta)
			if gained -= passed; !drop {
				gained += delta
			}
			least = min(least, gained)
			if gained-least > check.MaxAhead+check.MaxBehind+60*time.Millisecond {
				t.Fatalf("%v gained", gained-least)
			}
		}
	})
}

// TestClocksOfClients verifies that a client that leaves and joins again continues with its clock
// as long as that can be ahead, and that no clock is kept for longer.
func TestClocksOfClients(t *testing.T) {
	check, now := newTimeCheck(t, TimeCheck{MaxAhead: time.Second}), time.Now()
	first := check.clock(1)
	if check.clock(1) != first || check.clock(2) == first {
		t.Error("a client has two clocks, or two have one")
	}
	check.leave(1, now)
	check.leave(1, now)
	check.leave(2, now.Add(900*time.Millisecond))
	if check.clock(1) != first {
		t.Error("another clock 900 ms later")
	}
	check.leave(1, now.Add(950*time.Millisecond))
	for i := range 1000 {
		id := uint64(100 + i)
		check.clock(id)
		check.leave(id, now.Add(1900*time.Millisecond+time.Duration(i)*10*time.Millisecond))
	}
	if check.clock(1) == first {
		t.Error("the clock is kept")
	}
	if len(check.clocks) > 102 || len(check.left) > 100 {
		t.Errorf("%d clocks, %d have left", len(check.clocks), len(check.left))
	}
}

func TestTimeCheckErrors(t *testing.T) {
	typ, err := schema.Compile[testCall]("Move", 0)
	must(t, err)
	for want, c := range map[string]TimeCheck{
		"TimeCheck.MaxAhead":        {MaxAhead: -1},
		"TimeCheck.MaxBehind":       {MaxBehind: time.Hour},
		"TimeCheck.Drift":           {Drift: 0.2},
		"TimeCheck.RateHz":          {RateHz: 1001},
		"RateHz and Delta":          {RateHz: 60, Delta: "Time"},
		`TimeCheck.Delta is "Time"`: {Delta: "Time"},
	} {
		if err := c.apply(&rpc{schema: typ.Schema()}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}
