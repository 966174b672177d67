package main

import (
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/lab/snapbench"
)

func TestBenchSnapshots(t *testing.T) {
	computes(t)
	const file = "../../testdata/traces/cubes_delta_data_120.bin.gz"
	_, stdout, stderr := uplink(t, "bench-snapshots", file)
	for _, want := range []string{"114 frames of 901 cubes", "+ at rest", "+ relative indices", "initial state alone", "adaptive, 5 % loss, 100 ms"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s%s", want, stdout, stderr)
		}
	}
	rows := parse[[]snapbench.Row](t, "bench-snapshots", "--json", file)
	if len(rows) != 11 || rows[9].Form != "adaptive" || rows[9].Bytes < 1 {
		t.Errorf("%+v", rows)
	}
	if code, _, _ := uplink(t, "bench-snapshots", "root.go"); code != 1 {
		t.Errorf("code %d for another file", code)
	}
}
