package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// TestTune: what it writes is a schema that the trace can be read by, and what it prints names each step.
func TestTune(t *testing.T) {
	out := filepath.Join(t.TempDir(), "tuned.schema.json")
	code, stdout, stderr := uplink(t, "tune", rocketLeague, "--error", "Location=2cm,Rotation=0.5deg", "--loss", "5%", "-o", out)
	if code != 0 || stderr != "" {
		t.Fatal(stderr)
	}
	for _, want := range []string{"as the schema has it", "Location: resolution", "Rotation: 10 bits", "largest seen", "Redundancy ", "type ServerMove struct {", "schema.Quat"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	s, err := trace.LoadSchema(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Load(rocketLeague, s); err != nil {
		t.Error(err)
	}
	code, stdout, _ = uplink(t, "tune", rocketLeague, "--error", "Location=2cm,Rotation=0.5deg", "--loss", "5%", "--json")
	var got tuned
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || len(got.Steps) < 3 || len(got.Kept) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	again, err := schema.Parse(got.Schema)
	if err != nil || again.Fingerprint() != s.Fingerprint() || !strings.Contains(got.Go, "type ServerMove struct {") {
		t.Errorf("%v: %s", err, got.Schema)
	}
}

func TestTuneErrors(t *testing.T) {
	const hint = "\nhint: uplink tune --help\n"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--error A=1", 2, "uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json" + hint},
		{"a.csv", 2, "uplink: --error: want maximum errors of fields, such as Location=1cm" + hint},
		{"a.csv --error Location", 2, "uplink: --error \"Location\": want Field=0.01, or with a unit Field=1cm" + hint},
		{"a.csv --error A=1,A=2", 2, "uplink: --error: A is named twice" + hint},
		{"a.csv --error A=1 --unit A=x", 2, "uplink: --unit A=x: there are cm, "},
		{"a.csv --error A=1 --delivery 3", 2, "uplink: --delivery 3: want "},
		{"a.csv --error A=1 --loss 2", 2, "uplink: invalid argument"},
		{"none.csv --error A=1", 1, "uplink: trace: open none.csv: no such file or directory\n"},
		{"--error Nothing=1 " + rocketLeague, 1, "uplink: --error Nothing: ServerMove has no such field; there are Velocity, Location, "},
		{"--error Throttle=1 " + rocketLeague, 1, "uplink: --error Throttle: a uint is not rounded"},
		{"--error Location=1deg " + rocketLeague, 1, "uplink: --error Location: deg is one of angle, but Location has one of length"},
		{"--error Location=1 -o " + os.DevNull + "/x " + rocketLeague, 1, "uplink: --output: "},
	} {
		code, stdout, stderr := uplink(t, append([]string{"tune"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("%s: %d, %q, want %q", c.args, code, stderr, c.want)
		}
	}
}
