package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/sample"
)

// TestAnalyze: all three forms say the same, of one trace or more.
func TestAnalyze(t *testing.T) {
	computes(t)
	// The beginning of each, but for what is held against bounds.
	cars, portals := slice(t, sample.RocketLeague(), 400, nil).Name, slice(t, sample.Portal2(), 300, nil).Name
	names := []string{"slice: 400 frames", "slice: 300 frames"}
	r := parse[analysis.Report](t, "analyze", "--distance", "3", "--json", rocketLeague)
	sum, floor := r.CountBits+r.RoundingBits, 0.0
	for _, f := range r.Fields {
		sum += f.Bits
		if f.FloorBits != nil {
			floor += *f.FloorBits
		}
	}
	if math.Abs(sum-r.PayloadBits) > 1e-6 || r.PayloadBits < 20 || r.FullBits < 2*r.PayloadBits || floor < r.PayloadBits/3 || floor > 1.2*r.PayloadBits {
		t.Errorf("fields take %.1f of %.1f bits, full %.1f, floor %.1f", sum, r.PayloadBits, r.FullBits, floor)
	}
	code, stdout, stderr := uplink(t, "analyze", "--rtt", "60ms", "--loss", "5%", cars, portals)
	if code != 0 || stderr != "" {
		t.Fatal(stderr)
	}
	for _, want := range append(names, "loss 5 %", "Rotation", "least squares", "frame count") {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	page := filepath.Join(t.TempDir(), "out.html")
	if code, stdout, stderr = uplink(t, "analyze", "--distance", "3", "--html", page, cars); code != 0 || stdout != "" {
		t.Fatal(stderr)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<svg") || !strings.Contains(string(html), "Rotation") {
		t.Errorf("%s, %v", html, err)
	}
}

// TestAnalyzeWhatIf checks the row of each case, and the JSON array for several traces.
func TestAnalyzeWhatIf(t *testing.T) {
	computes(t)
	args := []string{"analyze", "--what-if", "--losses", "0,20%", "--resolutions", "1,4", "--redundancies", "off", "--rates", "30"}
	code, stdout, stderr := uplink(t, append(args, "--errors", "Location,Rotation", rocketLeague)...)
	if code != 0 || stderr != "" {
		t.Fatal(stderr)
	}
	lines := strings.Split(stdout, "\n")
	if !strings.Contains(lines[2], "Rotation mean") || !strings.HasPrefix(lines[6], "x 4") || lines[7] != "" {
		t.Errorf("%s", stdout)
	}
	all := parse[[]analysis.Outcome](t, append(args, "--json", rocketLeague, rocketLeague)...)
	if len(all) != 2 || len(all[0].Cases) != 4 {
		t.Fatalf("%+v", all)
	}
	if c := all[0].Cases; c[0].Delivered != 1 || c[1].Delivered > 0.9 || c[2].Bits >= c[0].Bits {
		t.Errorf("%+v", c)
	}
}

// TestAnalyzeDamaged shows the rows before the damage of a trace.
func TestAnalyzeDamaged(t *testing.T) {
	path := filepath.Join(writeFiles(t, map[string]string{"bad.csv": "x\n1\n2\n1e9\n", "bad.schema.json": oneScalar}), "bad.csv")
	for _, args := range [][]string{{"analyze", path}, {"analyze", "--what-if", path}} {
		code, stdout, stderr := uplink(t, args...)
		for _, want := range []string{path, "row 3", `"x"`, `"X"`, "\nhint: only the rows before the damage were used\n"} {
			if code != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%d, %q, want %s", code, stderr, want)
			}
		}
		if !strings.HasPrefix(stdout, "bad: 2 frames at 60 Hz") {
			t.Errorf("%v: the rows before the damage are not shown: %s", args, stdout)
		}
	}
}
