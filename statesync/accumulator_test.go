package statesync_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/statesync"
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
	for _, given := range [][]float64{{1, 1, 1, 1}, {1, 5, 5, 5, 5}, {1, 2, 3}, {3, 10, 10}, {1, 30, 30}} {
		if near := waits(t, given, 1); near < .9 {
			t.Errorf("with priorities %v the bound is never nearly met: %g of it", given, near)
		}
	}
}

// waits checks the bounds over 3000 ticks and returns the largest share of a bound that was waited.
func waits(t fatal, given []float64, n int) (near float64) {
	var bounds []int
	for i, p := range given {
		bounds = append(bounds, longest(p, slices.Concat(given[:i], given[i+1:]), n))
	}
	var a statesync.Accumulator
	last := make([]int, len(given))
	for tick := 1; tick <= 3000; tick++ {
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
			near = max(near, float64(tick-last[i])/float64(bounds[i]))
			last[i] = tick
		}
	}
	for i, p := range given {
		if 3000-last[i] > bounds[i] {
			t.Fatalf("object of priority %g of %v waits for %d ticks, want at most %d", p, given, 3000-last[i], bounds[i])
		}
	}
	return near
}

func TestBadPriorities(t *testing.T) {
	s, _ := pair(t, testSchema(t), config)
	for _, p := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		var pe *statesync.PriorityError
		if err := s.Prioritize(300, p); !errors.As(err, &pe) || pe.Object != 300 {
			t.Errorf("priority %g gave %v", p, err)
		}
	}
	var a statesync.Accumulator
	for range 3 { // sums stay finite
		a.Add(1, math.MaxFloat64)
	}
	if a.Sum(1) != math.MaxFloat64 {
		t.Errorf("the sum is %g", a.Sum(1))
	}
}

func TestOrder(t *testing.T) {
	var a statesync.Accumulator
	for id, p := range []float64{3, 0, 9, 3, 1e6} {
		a.Add(uint16(id), p)
	}
	a.Remove(4)
	a.Remove(4)
	a.Start()
	var got []uint16
	for id, ok := a.Next(); ok; id, ok = a.Next() {
		got = append(got, id)
	}
	if len(got) != 3 || got[0] != 2 || got[1] != 0 || got[2] != 3 || a.Len() != 4 {
		t.Errorf("got %v of %d", got, a.Len())
	}
	if n := testing.AllocsPerRun(10, func() {
		a.Add(2, 1)
		a.Start()
		a.Next()
	}); n != 0 {
		t.Errorf("%g allocations a tick", n)
	}
}
