package statesync_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/statesync"
)

// TestSenderLongestWait checks the bound of TestLongestWait for one object per tick with packets of
// any size and loss, if each object fits by itself.
func TestSenderLongestWait(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		given := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 5, 30}), 2, 12).Draw(rt, "priorities")
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), len(given))
		w.churn = 1 << 30
		loss := rapid.SampledFrom([]float64{0, .3, 1}).Draw(rt, "loss")
		cfg := config
		cfg.Budget = rapid.IntRange(64, 140).Draw(rt, "budget")
		s, r := pair(t, w.schema, cfg)
		set := w.schema.NewSet()
		var bounds []int
		for i, p := range given {
			bounds = append(bounds, longest(p, slices.Concat(given[:i], given[i+1:]), 1))
		}
		last := make([]int, len(given))
		for tick := 1; tick <= 300; tick++ {
			for _, x := range w.things[:len(given)] {
				if x.step(); w.r.IntN(20) == 0 {
					*x = *w.thing(0)
				}
			}
			w.fill(t, set)
			for i, p := range given {
				must(rt, s.Prioritize(uint16(i*7), p))
			}
			out, info, err := s.Append(nil, int64(tick), set)
			must(rt, err)
			for _, id := range info.Objects {
				last[id/7] = tick
			}
			for i, p := range given {
				if tick-last[i] > bounds[i] {
					rt.Fatalf("object of priority %g of %v waits for %d packets, want at most %d", p, given, tick-last[i], bounds[i])
				}
			}
			if w.r.Float64() < loss {
				continue
			}
			deliver(rt, s, r, out)
		}
	})
}

// TestManyGone removes many objects at once, without acks: the remaining one is still sent.
func TestManyGone(t *testing.T) {
	cfg := config
	cfg.Budget = 100
	s, r := pair(t, testSchema(t), cfg)
	all, left := still(t, testSchema(t), 1300), still(t, testSchema(t), 1)
	sent := map[uint16]bool{}
	tick := int64(0)
	send := func(n int) statesync.Info {
		tick++
		set := all
		if n == 1 {
			set = left
		}
		for id := range n {
			must(t, s.Prioritize(uint16(id), 1))
		}
		out, info, err := s.Append(nil, tick, set)
		must(t, err)
		if n > 1 {
			deliver(t, s, r, out)
		}
		return info
	}
	for len(sent) < all.Len() {
		for _, id := range send(all.Len()).Objects {
			sent[id] = true
		}
	}
	wait, most, gone := 0, 0, 0
	for range 200 {
		info := send(1)
		gone += info.Gone
		if wait++; slices.Contains(info.Objects, 0) {
			wait = 0
		}
		most = max(most, wait)
	}
	if most > 1 || gone < 1000 {
		t.Errorf("the one object that is left waits for %d packets, others were said to be gone %d times", most, gone)
	}
}
