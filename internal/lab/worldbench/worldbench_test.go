package worldbench_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/worldbench"
)

func TestRun(t *testing.T) {
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_2000.bin.gz")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := worldbench.NewRecording(frames)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := worldbench.NewPlain(2000, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, scene := range []worldbench.Scene{recorded, plain} {
		r, err := worldbench.Run(worldbench.Config{
			Players: 20, Ticks: 60, MinRTT: 20 * time.Millisecond, MaxRTT: 200 * time.Millisecond, Loss: 0.02, Seed: 1, Scene: scene, PerPlayer: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := json.MarshalIndent(r, "", " ")
		t.Logf("%s", out)
		if r.Mismatches > 0 || r.Decoded < 300 || r.DecodedObjects == 0 {
			t.Errorf("%d mismatches in %d messages", r.Mismatches, r.Decoded)
		}
	}
}
