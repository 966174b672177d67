package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchSnapshots(t *testing.T) {
	const file = "../../testdata/traces/cubes_delta_data_120.bin.gz"
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"bench-snapshots", file}, &out, &errs); code != 0 {
		t.Fatalf("code %d: %s", code, &errs)
	}
	for _, want := range []string{"114 frames of 901 cubes", "+ at rest", "+ relative indices", "initial state alone", "adaptive, 5 % loss, 100 ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	if code := run(t.Context(), []string{"bench-snapshots", "--json", file}, &out, &errs); code != 0 {
		t.Fatalf("code %d: %s", code, &errs)
	}
	var rows []struct {
		Form  string
		Bytes float64
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 11 || rows[9].Form != "adaptive" || rows[9].Bytes < 1 {
		t.Errorf("%v: %s", err, &out)
	}
	if code := run(t.Context(), []string{"bench-snapshots", "root.go"}, &out, &errs); code != 1 {
		t.Errorf("code %d for another file", code)
	}
}
