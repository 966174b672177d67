package perplayer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/snapbench"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/snapshot"
)

// recording returns the frames of the recording in testdata.
func recording(t testing.TB) []*snapshot.Set {
	t.Helper()
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_2000.bin.gz")
	uplinktest.Must(t, err)
	sets, err := snapbench.Sets(frames)
	uplinktest.Must(t, err)
	return sets
}

// play encodes sets, each against the newest multiple of anchor that is at least distance older. It
// returns the mean size from frame 60 on. models, if it is not nil, returns the models for a frame,
// or nil for those that were learned along the baselines.
func play(t testing.TB, sets []*snapshot.Set, distance, anchor int, models func(n int) *modelState, after func(n int, s *objectSchema, st *modelState)) float64 {
	t.Helper()
	w, err := NewWorld(snapbench.Cubes(), sets[0])
	uplinktest.Must(t, err)
	e := NewEncoder(w)
	sum, frames := 0, 0
	for n, set := range sets {
		w.Add(set)
		if k := (n - distance) / anchor * anchor; n >= distance {
			window := uint64(0)
			for back := anchor; back <= min(k, 60); back += anchor {
				window |= 1 << (back - 1)
			}
			uplinktest.Must(t, e.Ack(uint64(k), window))
		}
		if e.codec.params = nil; models != nil {
			e.codec.params = models(n)
		}
		out := e.Append(nil)
		if n >= 60 {
			sum += len(out)
			frames++
		}
		if after != nil {
			after(n, w.schema, e.states.get(uint64(n)))
		}
	}
	return float64(sum) / float64(frames)
}

// TestDesigns prints what the two designs of docs/design/snapshots.md cost in bytes, relative to a
// coder per player. With anchors, models learn along every k-th snapshot. With parameters, the
// server sends models that were learned on the same world, at a distance that is not always that of
// the payload.
func TestDesigns(t *testing.T) {
	sets := recording(t)
	distances := []int{2, 4, 7, 13}
	if testing.Short() {
		distances = []int{7}
	}
	learned := map[int][]*modelState{}
	var row strings.Builder
	base := map[int]float64{}
	for _, d := range distances {
		states := make([]*modelState, len(sets))
		base[d] = play(t, sets, d, 1, nil, func(n int, s *objectSchema, st *modelState) {
			if n%60 == 0 {
				states[n] = s.newState()
				states[n].copyFrom(st)
			}
		})
		learned[d] = states
		fmt.Fprintf(&row, " %8.1f", base[d])
	}
	t.Logf("%-32s%s", "per player, bytes", row.String())
	line := func(name string, size func(d int) float64) (worst float64) {
		row.Reset()
		for _, d := range distances {
			ratio := size(d) / base[d]
			worst = max(worst, ratio)
			fmt.Fprintf(&row, " %8.3f", ratio)
		}
		t.Logf("%-32s%s", name, row.String())
		return worst
	}
	for _, k := range []int{2, 3, 4} {
		line(fmt.Sprintf("anchors, k = %d", k), func(d int) float64 { return play(t, sets, d, k, nil, nil) })
	}
	for _, every := range []int{60, 300} {
		worst := line(fmt.Sprintf("parameters every %d frames", every), func(d int) float64 {
			return play(t, sets, d, 1, func(n int) *modelState { return learned[d][max(n-15, 0)/every*every] }, nil)
		})
		if worst > 1.1 {
			t.Errorf("parameters that are %d frames old cost %.3f", every, worst)
		}
	}
	for _, other := range distances {
		line(fmt.Sprintf("parameters learned at distance %d", other), func(d int) float64 {
			return play(t, sets, d, 1, func(n int) *modelState { return learned[other][max(n-15, 0)/60*60] }, nil)
		})
	}
}
