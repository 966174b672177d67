package main

import (
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/lab/worldbench"
)

// TestBenchWorld measures two players over loopback. The figures themselves are those of package
// worldbench.
func TestBenchWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until sessions are idle")
	}
	const file = "../../testdata/traces/cubes_delta_data_120.bin.gz"
	r := parse[worldbench.Result](t, "bench-world", "--players", "2", "--ticks", "20", "--json", file)
	if r.Players != 2 || r.Mismatches != 0 || r.SendRatio <= 0 || r.SnapshotBytes < 5 || r.BytesPerPlayer < 100 || r.BytesPerSession < r.BytesPerPlayer+1000 {
		t.Errorf("%+v", r)
	}
	_, stdout, stderr := uplink(t, "bench-world", "--players", "1", "--objects", "50", "--ticks", "5", "--rtt", "33ms")
	for _, want := range []string{"50 objects at 60 Hz, 5 ticks, round trips of 33 to 33 ms, 2 % loss, seed 1", "encodings", "bare send"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s%s", want, stdout, stderr)
		}
	}
}

func TestBenchWorldUsage(t *testing.T) {
	for _, args := range [][]string{{"--players", "0"}, {"--rtt", "x"}, {"--rtt", "3s"}, {"--loss", "2"}, {"--hostile", "--ticks", "60"}} {
		if code, _, stderr := uplink(t, append([]string{"bench-world"}, args...)...); code != 2 {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
}
