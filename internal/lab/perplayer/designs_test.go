package perplayer

import (
	"fmt"
	"math/rand/v2"
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

// link is the way to one client and back, in snapshots. An ack names all snapshots that arrived
// before, and is sent for each that arrives.
type link struct {
	distance int // from a snapshot to the first one that is sent after its ack
	loss     float64
}

// acks returns, for each snapshot, whether it arrives, and the newest snapshot whose ack arrived
// before this one was sent, or -1.
func (l link) acks(snapshots int) (arrives []bool, acked []int) {
	r := rand.New(rand.NewPCG(uint64(l.distance), 1))
	newest := -1
	for n := range snapshots {
		arrives = append(arrives, r.Float64() >= l.loss)
		lost := r.Float64() < l.loss
		if k := n - l.distance; k >= 0 && arrives[k] && !lost {
			newest = k
		}
		acked = append(acked, newest)
	}
	return arrives, acked
}

// window returns the acked snapshots before k, bit i for the one i+1 before it.
func window(k int, acked func(k int) bool) (window uint64) {
	for back := 1; back <= min(k, 60); back++ {
		if acked(k - back) {
			window |= 1 << (back - 1)
		}
	}
	return window
}

// encode encodes sets, each against the newest one that was acked, and returns the sizes. acks
// returns the newest ack before a frame, or -1, and its window. models, if it is not nil, returns
// the models for a frame; otherwise they are learned along the baselines.
func encode(t testing.TB, sets []*snapshot.Set, acks func(n int) (int, uint64), models func(n int) *modelState, after func(n int, s *objectSchema, st *modelState)) (sizes []int) {
	t.Helper()
	w, err := NewWorld(snapbench.Cubes(), sets[0])
	uplinktest.Must(t, err)
	e := NewEncoder(w)
	for n, set := range sets {
		w.Add(set)
		if k, window := acks(n); k >= 0 {
			uplinktest.Must(t, e.Ack(uint64(k), window))
		}
		if e.codec.params = nil; models != nil {
			e.codec.params = models(n)
		}
		sizes = append(sizes, len(e.Append(nil)))
		if after != nil {
			after(n, w.schema, e.states.get(uint64(n)))
		}
	}
	return sizes
}

// mean returns the mean size from frame 60 on.
func mean(sizes []int) float64 {
	sum := 0
	for _, n := range sizes[60:] {
		sum += n
	}
	return float64(sum) / float64(len(sizes)-60)
}

// perPlayer returns the mean size with a coder per player.
func perPlayer(t testing.TB, sets []*snapshot.Set, l link, models func(n int) *modelState, after func(n int, s *objectSchema, st *modelState)) float64 {
	t.Helper()
	arrives, acked := l.acks(len(sets))
	return mean(encode(t, sets, func(n int) (int, uint64) {
		return acked[n], window(acked[n], func(k int) bool { return arrives[k] })
	}, models, after))
}

// anchors returns the mean size if every k-th snapshot is an anchor, and each is encoded against
// the newest anchor that the client has together with all before it. An anchor that is lost is sent
// again as soon as an ack shows that it is missing, until it arrives. Each copy counts.
func anchors(t testing.TB, sets []*snapshot.Set, l link, k int) float64 {
	t.Helper()
	arrives, acked := l.acks(len(sets))
	r := rand.New(rand.NewPCG(uint64(l.distance), 2))
	known, copies := make([]int, len(sets)), make([]int, len(sets))
	heard := func(sent int) int { // the first frame before which an ack of that one or a later one is there
		n := sent + l.distance
		for n < len(sets) && acked[n] < sent {
			n++
		}
		return n
	}
	for a := 0; a < len(sets); a += k {
		at, there := heard(a), arrives[a]
		for !there && at < len(sets) {
			copies[a]++
			there, at = r.Float64() >= l.loss, heard(at)
		}
		if known[a] = at; a > 0 {
			known[a] = max(at, known[a-k])
		}
	}
	newest := -1
	sizes := encode(t, sets, func(n int) (int, uint64) {
		for next := (newest + k) / k * k; next < n && known[next] <= n; next += k {
			newest = next
		}
		return newest, window(newest, func(a int) bool { return a%k == 0 })
	}, nil, nil)
	for a, n := range copies {
		sizes[a] *= 1 + n
	}
	return mean(sizes)
}

// built returns the mean size with package snapshot: built-in parameters, and references of which
// the client must have all.
func built(t testing.TB, sets []*snapshot.Set, l link) float64 {
	t.Helper()
	arrives, acked := l.acks(len(sets))
	w := snapshot.NewWorld(snapbench.Cubes(), sets[0])
	var e snapshot.Encoder
	var receipts snapshot.Receipts
	var sizes []int
	for n, set := range sets {
		w.Begin().CopyFrom(set)
		if k := acked[n]; k >= 0 {
			a := snapshot.Ack{Newest: uint16(k), Window: window(k, func(k int) bool { return arrives[k] })}
			_, err := receipts.Ack(a)
			uplinktest.Must(t, err)
		}
		b := receipts.Baseline(uint64(n))
		payload, _, err := e.Append(nil, w, b, 1<<16)
		uplinktest.Must(t, err)
		receipts.Sent(uint64(n), b)
		sizes = append(sizes, len(payload))
	}
	return mean(sizes)
}

// TestDesigns prints what the two designs of docs/design/snapshots.md cost in bytes, relative to a
// coder per player. With anchors, models learn along every k-th snapshot. With parameters, the
// server sends models that were learned on the same world without loss, at a distance that is not
// always that of the payload. Without -v it plays one distance.
func TestDesigns(t *testing.T) {
	sets := recording(t)
	distances := []int{2, 4, 7, 13}
	losses := []float64{0, 0.02, 0.05}
	if !testing.Verbose() {
		distances, losses = []int{7}, []float64{0.02}
	}
	learned := map[int][]*modelState{}
	for _, d := range distances {
		states := make([]*modelState, len(sets))
		perPlayer(t, sets, link{distance: d}, nil, func(n int, s *objectSchema, st *modelState) {
			if n%60 == 0 {
				states[n] = s.newState()
				states[n].copyFrom(st)
			}
		})
		learned[d] = states
	}
	params := func(l link, at, every int) float64 {
		return perPlayer(t, sets, l, func(n int) *modelState { return learned[at][max(n-15, 0)/every*every] }, nil)
	}
	for _, loss := range losses {
		base := map[int]float64{}
		var row strings.Builder
		for _, d := range distances {
			base[d] = perPlayer(t, sets, link{d, loss}, nil, nil)
			fmt.Fprintf(&row, " %8.1f", base[d])
		}
		t.Logf("loss %2.0f %%: per player, bytes      %s", 100*loss, row.String())
		line := func(name string, size func(l link) float64) (worst float64) {
			row.Reset()
			for _, d := range distances {
				ratio := size(link{d, loss}) / base[d]
				worst = max(worst, ratio)
				fmt.Fprintf(&row, " %8.3f", ratio)
			}
			t.Logf("%-33s%s", name, row.String())
			return worst
		}
		for k := 1; k <= 4; k++ {
			line(fmt.Sprintf("anchors, k = %d", k), func(l link) float64 { return anchors(t, sets, l, k) })
		}
		for _, every := range []int{60, 300} {
			name := fmt.Sprintf("parameters every %d frames", every)
			if worst := line(name, func(l link) float64 { return params(l, l.distance, every) }); worst > 1.1 {
				t.Errorf("%s cost %.3f", name, worst)
			}
		}
		if line("package snapshot", func(l link) float64 { return built(t, sets, l) }) > 1.1 {
			t.Error("package snapshot takes more than 1.1 times the bytes")
		}
		if loss > 0 {
			continue
		}
		for _, other := range distances {
			line(fmt.Sprintf("parameters learned at distance %d", other), func(l link) float64 { return params(l, other, 60) })
		}
	}
}
