package statesync_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/statesync"
)

// longest returns an upper bound of the wait of an object of priority p, in ticks, if n objects are
// sent per tick and the others have the given priorities. docs/state-sync.md derives it.
func longest(p float64, others []float64, n int) int {
	for w := 1e9; ; {
		most := 0.
		for _, q := range others {
			most++
			if q > p {
				most += math.Floor(math.Log(w)/-math.Log1p(-p/q) + 1e-9)
			}
		}
		if most = math.Floor(most / float64(n)); most >= w {
			return int(w) + 1
		}
		w = max(most, 1)
	}
}

func TestLongestWait(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		given := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]float64{1, 100, 1e6}), rapid.Float64Range(.01, 200)), 2, 40).Draw(rt, "priorities")
		waits(rt, given, rapid.IntRange(1, len(given)-1).Draw(rt, "sent"))
	})
}

// waits checks the bounds over 3000 ticks.
func waits(t rapid.TB, given []float64, n int) {
	var bounds []int
	for i, p := range given {
		bounds = append(bounds, longest(p, slices.Concat(given[:i], given[i+1:]), n))
	}
	var a statesync.Accumulator
	last := make([]int, len(given))
	for tick := 1; tick <= 3000; tick++ {
		a.Open(len(given) * 5)
		for i, p := range given {
			a.Add(uint16(i*5), p)
		}
		a.Start()
		for range n {
			id, ok := a.Next()
			if !ok {
				t.Fatalf("nothing left to send")
			}
			a.Sent(id)
			i := id / 5
			if tick-last[i] > bounds[i] {
				t.Fatalf("object of priority %g of %v waited %d ticks, want at most %d", given[i], given, tick-last[i], bounds[i])
			}
			last[i] = tick
		}
	}
	for i, p := range given {
		if 3000-last[i] > bounds[i] {
			t.Fatalf("object of priority %g of %v waits for %d ticks, want at most %d", p, given, 3000-last[i], bounds[i])
		}
	}
}

// TestOrder checks that objects come in descending order of sums, then ascending ids, without those
// whose sum is zero.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOf(rapid.SampledFrom([]float64{0, 1, 2, 2.5, 1e9})).Draw(t, "priorities")
		var a statesync.Accumulator
		a.Open(len(given))
		var want []uint16
		for id, p := range given {
			if a.Add(uint16(id), p); p > 0 {
				want = append(want, uint16(id))
			}
		}
		slices.SortStableFunc(want, func(a, b uint16) int { return cmp.Compare(given[b], given[a]) })
		a.Start()
		var got []uint16
		for id, ok := a.Next(); ok; id, ok = a.Next() {
			got = append(got, id)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("order %d, want %d", got, want)
		}
	})
}

func TestBadPriorities(t *testing.T) {
	s, _ := pair(t, testSchema(t), config)
	for _, p := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		for _, err := range []error{s.Prioritize(300, p), s.world.Prioritize(300, p)} {
			if err == nil || !strings.Contains(err.Error(), "object 300: priority") {
				t.Errorf("priority %g gave %v", p, err)
			}
		}
	}
	var a statesync.Accumulator
	a.Open(2)
	for range 3 { // sums stay finite
		a.Add(1, math.MaxFloat64)
	}
	if a.Sum(1) != math.MaxFloat64 {
		t.Errorf("the sum is %g", a.Sum(1))
	}
}

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

// TestWorldPriorities checks that priorities of a world count from the tick on in which they are
// set, before or after its objects, as those of a sender do.
func TestWorldPriorities(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), len((*world)(nil).things))
		w.churn = rapid.IntRange(2, 300).Draw(rt, "churn")
		cfg := config
		cfg.Budget = 200
		var worlds [3]*statesync.Shared
		var senders [3]*statesync.Sender
		for i := range worlds {
			var err error
			worlds[i], err = statesync.NewShared(w.schema, cfg)
			must(rt, err)
			senders[i], err = worlds[i].NewSender(cfg)
			must(rt, err)
		}
		given := make([]float64, len(w.things))
		for tick := range int64(60) {
			w.step()
			set := w.schema.NewSet()
			w.fill(t, set)
			changed := w.r.IntN(len(given))
			given[changed] = float64(w.r.IntN(5))
			must(rt, worlds[0].Prioritize(uint16(changed*7), given[changed]))
			var packets [3][]byte
			for i := range worlds {
				must(rt, worlds[i].SetTick(tick, set))
			}
			must(rt, worlds[1].Prioritize(uint16(changed*7), given[changed]))
			for i, p := range given {
				must(rt, senders[2].Prioritize(uint16(i*7), p))
			}
			for i, s := range senders {
				packets[i], _, _ = s.Append(nil) // nothing has a priority: an error
			}
			if !bytes.Equal(packets[0], packets[1]) || !bytes.Equal(packets[0], packets[2]) {
				rt.Fatalf("tick %d: packets %x", tick, packets)
			}
		}
	})
}
