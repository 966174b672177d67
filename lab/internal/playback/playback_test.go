package playback

import (
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// falling is a recording in which the first cube falls for four seconds, the second one starts at
// the first and stops dead at the third, and the others lie still.
func falling() []cubes.Frame {
	frames := make([]cubes.Frame, 4*cubes.Rate)
	for n := range frames {
		for i := range frames[n] {
			frames[n][i] = cubes.Cube{Largest: 3, Smallest: [3]int32{255, 255, 255}}
		}
		frames[n][0].Position[2] = int32(-4 * n * n)
		frames[n][1].Position[0] = int32(64 * min(max(n-cubes.Rate, 0), 2*cubes.Rate))
	}
	return frames
}

func TestWorld(t *testing.T) {
	w := NewWorld(falling())
	// 4 n² steps at 60 Hz are 4 * 2 n * 60 / 512 m/s.
	if got, want := w.frames[100][0].pose.Velocity, (schema.Vec3{Z: -93.75}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := w.frames[70][1].pose.Velocity; got != (schema.Vec3{X: 7.5}) {
		t.Error(got)
	}
	for n, want := range map[int][2]bool{0: {}, 53: {}, 60: {true, true}, 80: {true, false}, 181: {true, true}, 185: {true, true}, 187: {}, 239: {}} {
		if got := [2]bool{w.within(w.moves, n, 1), w.within(w.hits, n, 1)}; got != want {
			t.Errorf("frame %d: moves and is hit: %v, want %v", n, got, want)
		}
		if w.within(w.moves, n, 2) {
			t.Errorf("frame %d: a cube that lies still moves", n)
		}
	}
}

func TestFrameAt(t *testing.T) {
	for n := range 1000 {
		if got := frameAt(at(n)); got != n {
			t.Fatalf("%d at %v", got, at(n))
		}
		if got := frameAt(at(n+1) - 1); got != n {
			t.Fatalf("%d just before %v, want %d", got, at(n+1), n)
		}
	}
}

func TestTurned(t *testing.T) {
	a := schema.Quat{W: 1}
	for _, angle := range []float64{0, 1e-3, 1, 90, 180} {
		s, c := math.Sincos(angle * math.Pi / 360)
		for _, sign := range []float64{1, -1} {
			if got := turned(a, schema.Quat{X: sign * s, W: sign * c}); math.Abs(got-angle) > 1e-9 {
				t.Errorf("%v, want %v", got, angle)
			}
		}
	}
}

// TestPerfectLink shows every frame as it was, the delay late, where all frames are sent and none
// is lost.
func TestPerfectLink(t *testing.T) {
	results, duel, err := Run(NewWorld(falling()), Options{Hz: 60, Runs: 1, Link: simnet.Config{Delay: 50 * time.Millisecond}})
	uplinktest.Must(t, err)
	for _, r := range results[:hermite+1] {
		if r.frames == 0 || r.Position.P99 != 0 || r.Orientation.P99 != 0 || r.Hitches != 0 || math.Abs(r.Delay-100) > 5 {
			t.Errorf("%+v", r)
		}
	}
	if duel.Free.Count+duel.Hit.Count+duel.Resting.Count != 0 {
		t.Errorf("%+v", duel)
	}
}

// TestOrder checks that at 10 Hz the error of Hermite is less than half of linear's, and that less
// than half of nearest's, on the recording and on a fall. The spline of a fall is exact except for
// rounding.
func TestOrder(t *testing.T) {
	worlds := map[string][]cubes.Frame{"fall": falling()[:3*cubes.Rate]}
	if !testing.Short() {
		recorded, err := cubes.Load("../../../testdata/traces/cubes_delta_data_2000.bin.gz")
		uplinktest.Must(t, err)
		worlds["recording"] = recorded[600:1000]
	}
	link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 2 * time.Second / cubes.Rate, Loss: 0.05, Seed: 7}
	for name, frames := range worlds {
		results, duel, err := Run(NewWorld(frames), Options{Hz: 10, Runs: 1, Link: link})
		uplinktest.Must(t, err)
		nearest, lin, herm := results[0].Position, results[linear].Position, results[hermite].Position
		if !(2*herm.Mean < lin.Mean && 2*lin.Mean < nearest.Mean) {
			t.Errorf("%s, seed %d: nearest %+v, linear %+v, Hermite %+v", name, link.Seed, nearest, lin, herm)
		}
		if duel.Free.Count == 0 || !(duel.Free.Hermite < duel.Free.Linear) {
			t.Errorf("%s: %+v", name, duel)
		}
		if name == "fall" && (herm.P99 > 10 || results[linear].Delay < 350 || results[linear].Delay > 380) {
			t.Errorf("%+v", results)
		}
	}
}

// TestSameSeed checks that results depend on the seed only.
func TestSameSeed(t *testing.T) {
	w := NewWorld(falling())
	o := Options{Hz: 20, Runs: 2, Link: simnet.Config{Jitter: 20 * time.Millisecond, Loss: 0.1, Seed: 3}}
	a, _, err1 := Run(w, o)
	b, _, err2 := Run(w, o)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i := range a {
		if a[i].Position.Mean != b[i].Position.Mean || a[i].Delay != b[i].Delay || a[i].Hitches != b[i].Hitches {
			t.Errorf("%+v and %+v", a[i], b[i])
		}
	}
}

func TestBadLink(t *testing.T) {
	if _, _, err := Run(NewWorld(falling()), Options{Hz: 60, Runs: 1, Link: simnet.Config{Loss: 2}}); err == nil {
		t.Error("a link that loses twice what is sent")
	}
}
