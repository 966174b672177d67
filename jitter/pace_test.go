package jitter_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/pacing"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestPace checks that the client's clock brings slack to its target, over links with jitter, loss
// and changing delay, and with clock drift of up to 500 ppm.
func TestPace(t *testing.T) {
	const hz = 60
	for _, c := range []struct {
		name         string
		jitter       time.Duration
		loss         float64
		older        int
		change       time.Duration // of the delay
		depth        time.Duration
		off, worst   time.Duration
		missing      float64 // a minute
		rate, resync float64
	}{
		{name: "quiet", off: 3 * ms, worst: 6 * ms, missing: 0, rate: 0.003},
		{name: "jitter", jitter: 5 * ms, off: 4 * ms, worst: 12 * ms, missing: 4, rate: 0.005},
		{name: "fixed depth", jitter: 5 * ms, depth: 40 * ms, off: 4 * ms, worst: 12 * ms, missing: 2, rate: 0.005},
		{name: "lossy", jitter: 10 * ms, loss: 0.05, older: 2, off: 10 * ms, worst: 80 * ms, missing: 15, rate: jitter.MaxPace, resync: 1},
		{name: "mobile", jitter: 20 * ms, loss: 0.05, older: 2, off: 12 * ms, worst: 100 * ms, missing: 15, rate: jitter.MaxPace, resync: 2},
		{name: "longer way", jitter: 5 * ms, loss: 0.01, older: 2, change: 120 * ms, off: 8 * ms, worst: 100 * ms, missing: 12, rate: jitter.MaxPace, resync: 1},
		{name: "shorter way", jitter: 5 * ms, loss: 0.01, older: 2, change: 10 * ms, off: 8 * ms, worst: 60 * ms, missing: 10, rate: jitter.MaxPace, resync: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, drift := range []float64{-500e-6, 0, 500e-6} {
				seed := uint64(i) + 1
				link := simnet.Config{Delay: 50 * ms, Jitter: c.jitter, Loss: c.loss}
				o := pacing.Options{
					Hz: hz, Duration: 3 * time.Minute, Settle: 15 * time.Second, Up: link, Down: link, Drift: drift,
					Older: c.older, Ragged: ms, Buffer: jitter.Config{Depth: c.depth}, Seed: seed,
				}
				if c.change != 0 {
					o.Change, o.Delay = time.Minute, c.change
				}
				r, err := pacing.Run(o)
				uplinktest.Must(t, err)
				got := fmt.Sprintf("drift %+.0f ppm, seed %d: slack %v of %v, off by %v, at most %v; %.1f missing a minute; clock %.4f to %.4f; %+v",
					1e6*drift, seed, r.Slack, r.Target, r.Off, r.Worst, r.Missing(hz), r.Slowest, r.Fastest, r.Stats)
				t.Log(got)
				if r.Off > c.off || r.Worst > c.worst {
					t.Errorf("slack is off by more than %v, or %v: %s", c.off, c.worst, got)
				}
				if r.Missing(hz) > c.missing {
					t.Errorf("more than %v a minute are missing: %s", c.missing, got)
				}
				if r.Fastest > 1+c.rate || r.Slowest < 1-c.rate {
					t.Errorf("the clock is more than %v off: %s", c.rate, got)
				}
				if float64(r.Stats.Resyncs) > 3*c.resync {
					t.Errorf("more than %v resyncs a minute: %s", c.resync, got)
				}
			}
		})
	}
}

// TestPop checks that a receiver follows a sender with clock drift, over a link with jitter.
func TestPop(t *testing.T) {
	for i, drift := range []float64{-500e-6, 500e-6} {
		seed := uint64(i) + 1
		link, err := simnet.NewLink(simnet.Config{Delay: 30 * ms, Jitter: 5 * ms, Seed: seed})
		uplinktest.Must(t, err)
		queue := simnet.NewQueue[uint64](link)
		b := newBuffer(t, jitter.Config{})
		var sent, last uint64
		for at := time.Duration(0); at < 2*time.Minute; at += 7 * ms { // frames at 143 Hz
			for ; time.Duration(float64(sent)*float64(interval)*(1+drift)) <= at; sent++ {
				queue.Push(at, sent, 100)
			}
			for {
				v, came, ok := queue.Pop(at)
				if !ok {
					break
				}
				b.Add(came, v, &v)
			}
			for {
				var v uint64
				tick, state := b.Pop(at, &v)
				if state == jitter.Waiting {
					break
				}
				last = tick
			}
		}
		st := b.Stats()
		if lag := time.Duration(sent-last) * interval; lag > 30*ms+st.Target+3*interval || st.Missing > 20 || st.Resyncs > 1 || st.Released < 7000 {
			t.Errorf("drift %v, seed %d: %v behind: %+v", drift, seed, lag, st)
		}
	}
}

// TestPacer checks that rates are bounded and expire without reports.
func TestPacer(t *testing.T) {
	var p jitter.Pacer
	if r := p.Rate(0); r != 1 {
		t.Errorf("%v before anything was told", r)
	}
	for _, c := range []struct {
		slack, target time.Duration
		want          float64
	}{{30 * ms, 30 * ms, 1}, {27 * ms, 30 * ms, 1.001}, {-time.Hour, 0, 1 + jitter.MaxPace}, {time.Hour, 0, 1 - jitter.MaxPace}} {
		p.Report(time.Second, c.slack, c.target, 1)
		if r := p.Rate(time.Second); r < c.want-1e-9 || r > c.want+1e-9 {
			t.Errorf("slack %v of %v: %v, want %v", c.slack, c.target, r, c.want)
		}
	}
	if r := p.Rate(time.Minute); r != 1 {
		t.Errorf("%v long after", r)
	}
}

// TestAnything adds arbitrary values: each is released at most once, in order between two jumps,
// and unchanged; the counters add up; and a sender that then sends evenly plays within a second.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := jitter.Config{Interval: interval}
		if rapid.Bool().Draw(t, "fixed") {
			c.Depth = time.Duration(rapid.IntRange(1, 200).Draw(t, "depth")) * ms
		}
		b, err := jitter.New[uint64](c)
		if err != nil {
			t.Fatal(err)
		}
		pops := rapid.Bool().Draw(t, "pops")
		at, next := time.Duration(0), rapid.Uint64().Draw(t, "first")
		var fates [4]uint64
		var missing, last, resyncs uint64
		some := false
		send := func(tick uint64) {
			v := ^tick
			fates[b.Add(at, tick, &v)]++
		}
		tick := func() {
			for {
				v := uint64(0)
				var n uint64
				var state jitter.State
				if pops {
					n, state = b.Pop(at, &v)
				} else {
					n, state = b.Step(at, &v)
				}
				switch state {
				case jitter.Released:
					if v != ^n {
						t.Fatalf("tick %d has %d", n, ^v)
					}
					st := b.Stats()
					if some && st.Resyncs == resyncs && int64(n-last) <= 0 {
						t.Fatalf("tick %d is released after %d", n, last)
					}
					some, last, resyncs = true, n, st.Resyncs
				case jitter.Missing:
					missing++
				case jitter.Waiting:
				}
				if !pops || state == jitter.Waiting {
					return
				}
			}
		}
		check := func() {
			st := b.Stats()
			sum := jitter.Stats{Late: fates[jitter.Late], Duplicate: fates[jitter.Duplicate], Early: fates[jitter.Early]}
			if st.Late != sum.Late || st.Duplicate != sum.Duplicate || st.Early != sum.Early || st.Missing != missing || st.Dry > missing {
				t.Fatalf("%+v, but %v fates and %d missing", st, fates, missing)
			}
			if st.Released+st.Skipped+uint64(st.Held) != fates[jitter.Held] || st.Held < 0 {
				t.Fatalf("%d were taken: %+v", fates[jitter.Held], st)
			}
		}
		for range rapid.IntRange(0, 300).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"send", "send", "send", "lose", "tick", "tick", "tick", "old", "ahead", "pause", "stall"}).Draw(t, "event") {
			case "send":
				send(next)
				next++
			case "lose":
				next++
			case "tick":
				at += interval
				tick()
			case "old":
				send(next - rapid.Uint64Range(1, 200).Draw(t, "age"))
			case "ahead":
				next += rapid.Uint64().Draw(t, "jump") >> rapid.IntRange(0, 63).Draw(t, "shift")
			case "pause":
				at += time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause")) * ms
			case "stall":
				for range rapid.IntRange(0, 100).Draw(t, "calls") {
					send(next)
					next++
				}
			}
			check()
		}
		evenly := func(ticks int) {
			for range ticks {
				at += interval / 2
				send(next)
				next++
				at += interval / 2
				tick()
			}
		}
		evenly(int(time.Second / interval))
		before := b.Stats()
		evenly(100)
		check()
		if after := b.Stats(); float64(after.Released-before.Released) < 100*(1-jitter.MaxPace)-1 {
			t.Fatalf("100 ticks release %d: %+v", after.Released-before.Released, after)
		}
	})
}
