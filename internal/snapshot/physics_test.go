package snapshot_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// TestPhysics verifies that a world learns what cubes of 0.4 m are within six seconds: their size,
// the ground, and that they touch within three meters.
func TestPhysics(t *testing.T) {
	frames, err := cubes.Load("../../testdata/traces/cubes_delta_data_2000.bin.gz")
	must(t, err)
	sets, err := cubeset.Of(frames[:6*cubes.Rate])
	must(t, err)
	w := snapshot.NewHistory(cubeset.Schema(), sets[0])
	for _, s := range sets {
		w.Begin().CopyFrom(s)
	}
	const want = .2 * cubes.Unit // half a cube
	if half, floor, contact := w.Physics(2); half < .8*want || half > 1.2*want || floor < .8*want || floor > 1.2*want || contact == 0 || contact > 3*cubes.Unit {
		t.Errorf("half a cube of %.1f steps is %.1f, the ground %.1f, contacts reach %.1f", want, half, floor, contact)
	}
	for axis := range 2 {
		if half, _, _ := w.Physics(axis); half != 0 {
			t.Errorf("there is a ground along axis %d, of objects of %.1f steps", axis, half)
		}
	}
}
