package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// TestTune: what it writes is a schema that the trace can be read by, and what it prints names each
// step.
func TestTune(t *testing.T) {
	computes(t)
	out := filepath.Join(t.TempDir(), "tuned.schema.json")
	code, stdout, stderr := uplink(t, "tune", rocketLeague, "--error", "Location=2cm,Rotation=0.5deg", "--loss", "5%", "-o", out)
	if code != 0 || stderr != "" {
		t.Fatal(stderr)
	}
	for _, want := range []string{"as the schema has it", "Location: resolution", "Rotation: 10 bits", "max seen", "Redundancy ", "type ServerMove struct {", "schema.Quat"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	s, err := trace.LoadSchema(out)
	must(t, err)
	if _, err := trace.Load(rocketLeague, s); err != nil {
		t.Error(err)
	}
	got := parse[tuned](t, "tune", rocketLeague, "--error", "Location=2cm,Rotation=0.5deg", "--loss", "5%", "--json")
	if len(got.Steps) < 3 || len(got.Kept) != 2 {
		t.Fatalf("%+v", got)
	}
	again, err := schema.Parse(got.Schema)
	if err != nil || again.Fingerprint() != s.Fingerprint() || !strings.Contains(got.Go, "type ServerMove struct {") {
		t.Errorf("%v: %s", err, got.Schema)
	}
}
