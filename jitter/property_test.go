package jitter_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/jitter"
)

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
		if after := b.Stats(); after.Released-before.Released < 90 {
			t.Fatalf("100 ticks release %d: %+v", after.Released-before.Released, after)
		}
	})
}
