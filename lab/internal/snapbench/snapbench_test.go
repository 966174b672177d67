package snapbench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
	"github.com/uplink-rpc/uplink/lab/internal/snapbench"
)

func recording(t *testing.T) []*snapshot.Set {
	t.Helper()
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_120.bin.gz")
	uplinktest.Must(t, err)
	sets, err := cubeset.Of(frames)
	uplinktest.Must(t, err)
	if len(sets) != 120 || sets[0].Len() != cubes.Count {
		t.Fatalf("%d frames of %d cubes", len(sets), sets[0].Len())
	}
	return sets
}

func still() time.Duration { return 0 }

// TestForms checks that every technique of packing saves bytes, and the adaptive codec more.
func TestForms(t *testing.T) {
	sets := recording(t)
	rows, err := snapbench.Packed(sets)
	uplinktest.Must(t, err)
	r, err := snapbench.Adaptive("adaptive", sets, snapbench.Link{Up: snapbench.Distance}, still)
	uplinktest.Must(t, err)
	last := len(rows) - 1
	initial := rows[last]
	if initial.Wrong > 0 || initial.Bytes <= rows[last-1].Bytes || initial.Bytes >= rows[2].Bytes {
		t.Errorf("%+v, after %+v", initial, rows[last-1])
	}
	rows[last] = r
	for i, r := range rows {
		if r.Wrong > 0 || r.Frames != 114 || r.Delivered != 114 {
			t.Errorf("%+v", r)
		}
		if i > 0 && r.Bytes >= rows[i-1].Bytes {
			t.Errorf("%s: %.1f bytes, after %.1f", r.Form, r.Bytes, rows[i-1].Bytes)
		}
	}
}

func TestLossyLink(t *testing.T) {
	r, err := snapbench.Adaptive("lossy", recording(t), snapbench.Link{Loss: .3, Down: 3, Up: 3, Seed: 4}, still)
	uplinktest.Must(t, err)
	if r.Wrong > 0 || r.Delivered < 60 || r.Delivered > 100 {
		t.Errorf("%+v", r)
	}
}

// TestGroup checks that a world with areas shows all objects, for more bytes than a whole world.
func TestGroup(t *testing.T) {
	sets := recording(t)
	whole, err := snapbench.Adaptive("adaptive", sets, snapbench.Link{Up: snapbench.Distance}, still)
	uplinktest.Must(t, err)
	r, err := snapbench.Group("group", sets, still)
	uplinktest.Must(t, err)
	if r.Wrong > 0 || r.Frames != whole.Frames || r.Bytes <= whole.Bytes || r.Bytes > 1.3*whole.Bytes {
		t.Errorf("%+v, and %+v", r, whole)
	}
}

// TestOutOfBounds checks that an error names the field.
func TestOutOfBounds(t *testing.T) {
	frames := make([]cubes.Frame, 2)
	frames[1][7].Position[2] = 1 << 20
	if _, err := cubeset.Of(frames); err == nil || !strings.Contains(err.Error(), "frame 1: ") || !strings.Contains(err.Error(), "Position") {
		t.Errorf("%v", err)
	}
}
