package simnet

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newTestLink(t testing.TB, cfg Config) *Link {
	t.Helper()
	t.Logf("link: %+v", cfg)
	l, err := NewLink(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sendAll sends that many packets of 100 bytes, one a millisecond, and returns the flight times of
// each one's copies.
func sendAll(l *Link, count int) [][]time.Duration {
	flights := make([][]time.Duration, count)
	for i := range flights {
		now := time.Duration(i) * time.Millisecond
		for _, at := range l.Send(nil, now, 100) {
			flights[i] = append(flights[i], at-now)
		}
	}
	return flights
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestLossAndBursts(t *testing.T) {
	const count = 200_000
	for _, cfg := range []Config{
		{Loss: 0.1},
		{Loss: 0.1, Burst: 1},
		{Loss: 0.1, Burst: 3},
		{Loss: 0.3, Burst: 5},
		{Loss: 0.9, Burst: 20},
		{Loss: 1},
		{Loss: 1, Burst: 3},
		{Burst: 3},
	} {
		lost, bursts, inBurst := 0, 0, false
		for _, f := range sendAll(newTestLink(t, cfg), count) {
			if len(f) == 0 {
				lost++
				if !inBurst {
					bursts++
				}
			}
			inBurst = len(f) == 0
		}
		near(t, "share lost", float64(lost)/count, cfg.Loss, 0.02)
		if cfg.Loss > 0 && cfg.Loss < 1 {
			want := max(cfg.Burst, 1/(1-cfg.Loss))
			near(t, "mean burst", float64(lost)/float64(bursts), want, 0.05*want)
		}
	}
}

func TestDelayAndJitter(t *testing.T) {
	cfg := Config{Delay: 30 * time.Millisecond, Jitter: 10 * time.Millisecond}
	const count = 100_000
	var sum time.Duration
	overtakes := 0
	var last time.Duration
	for i, f := range sendAll(newTestLink(t, cfg), count) {
		if f[0] < cfg.Delay || f[0] > cfg.Delay+jitterCut*cfg.Jitter {
			t.Fatalf("packet %d flies %v", i, f[0])
		}
		sum += f[0]
		if f[0] < last-time.Millisecond {
			overtakes++
		}
		last = f[0]
	}
	// The cut takes exp(-4) off the mean of the exponential distribution.
	mean := float64(cfg.Delay) + float64(cfg.Jitter)*(1-math.Exp(-jitterCut))
	near(t, "mean flight", float64(sum)/count, mean, float64(cfg.Jitter)/50)
	if overtakes == 0 {
		t.Error("no packet overtook another")
	}
}

func TestDuplicate(t *testing.T) {
	const count = 100_000
	twice := 0
	for _, f := range sendAll(newTestLink(t, Config{Duplicate: 0.25}), count) {
		twice += len(f) - 1
	}
	near(t, "share that came twice", float64(twice)/count, 0.25, 0.01)
}

func TestRate(t *testing.T) {
	// Packets of 100 bytes, one a millisecond, are ten times what the link carries.
	flights := sendAll(newTestLink(t, Config{Rate: 10_000}), 2000)
	came := 0
	for i, f := range flights {
		if len(f) == 0 {
			continue
		}
		came++
		if f[0] < 10*time.Millisecond || f[0] > maxQueue+10*time.Millisecond {
			t.Errorf("packet %d flies %v", i, f[0])
		}
	}
	near(t, "packets carried", float64(came), 200+25, 2)
}

func TestSameSeedSameLosses(t *testing.T) {
	cfg := Config{Loss: 0.2, Burst: 3, Seed: 5}
	a := sendAll(newTestLink(t, cfg), 1000)
	cfg.Delay, cfg.Jitter, cfg.Duplicate = time.Second, time.Second, 0.5
	b := sendAll(newTestLink(t, cfg), 1000)
	cfg.Seed++
	other := sendAll(newTestLink(t, cfg), 1000)
	differ := 0
	for i := range a {
		if (len(a[i]) == 0) != (len(b[i]) == 0) {
			t.Errorf("packet %d is lost on one link only", i)
		}
		if (len(a[i]) == 0) != (len(other[i]) == 0) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("another seed loses the same packets")
	}
}

func TestValidate(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Delay": {Delay: -1}, "Jitter": {Jitter: -1}, "Loss": {Loss: 1.01}, "Burst": {Burst: math.Inf(1)},
		"Duplicate": {Duplicate: math.NaN()}, "Rate": {Rate: -1}, "MTU": {MTU: -1},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := NewLink(cfg); err == nil {
			t.Errorf("%s: NewLink accepts it", field)
		}
		l := newTestLink(t, Config{})
		if err := l.Set(cfg); err == nil || l.Config() != (Config{}) {
			t.Errorf("%s: Set: %v", field, err)
		}
	}
}

func TestMTU(t *testing.T) {
	l := newTestLink(t, Config{MTU: 1500})
	if short, long := l.Send(nil, 0, 1500), l.Send(nil, 0, 1501); len(short) != 1 || len(long) != 0 {
		t.Errorf("arrivals %v and %v", short, long)
	}
}

func TestSet(t *testing.T) {
	l := newTestLink(t, Config{})
	if err := l.Set(Config{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	if got := l.Send(nil, 0, 1); len(got) != 0 {
		t.Errorf("arrivals %v", got)
	}
}

// TestSetKeepsOrder changes delay and rate again and again: no packet is lost by it, and none
// overtakes another where there is no jitter.
func TestSetKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := NewLink(Config{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		var now, last time.Duration
		for range 100 {
			if rapid.Bool().Draw(t, "change") {
				cfg := Config{Delay: time.Duration(rapid.IntRange(0, 100).Draw(t, "delay")) * time.Millisecond}
				if rapid.Bool().Draw(t, "limited") {
					cfg.Rate = 100_000
				}
				if err := l.Set(cfg); err != nil {
					t.Fatal(err)
				}
			}
			got := l.Send(nil, now, 100)
			if len(got) != 1 || got[0] < last || got[0] < now+l.Config().Delay {
				t.Fatalf("sent at %v, the one before arrives at %v: %v", now, last, got)
			}
			last = got[0]
			now += time.Duration(rapid.IntRange(0, 10).Draw(t, "pause")) * time.Millisecond
		}
		now += time.Second
		if got := l.Send(nil, now, 0); got[0] != now+l.Config().Delay {
			t.Errorf("after a rest it takes %v, not %v", got[0]-now, l.Config().Delay)
		}
	})
}

// TestSetKeepsSeed: a change does not alter which packets a link loses.
func TestSetKeepsSeed(t *testing.T) {
	cfg := Config{Loss: 0.2, Seed: 5}
	want, changed := sendAll(newTestLink(t, cfg), 1000), newTestLink(t, cfg)
	got := sendAll(changed, 500)
	cfg.Delay, cfg.Seed = time.Second, 6
	if err := changed.Set(cfg); err != nil {
		t.Fatal(err)
	}
	got = append(got, sendAll(changed, 500)...)
	for i := range want {
		if (len(got[i]) == 0) != (len(want[i]) == 0) {
			t.Fatalf("packet %d is lost on one link only", i)
		}
	}
}
