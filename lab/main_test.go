package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/lab/internal/drift"
	"github.com/uplink-rpc/uplink/lab/internal/snapbench"
	"github.com/uplink-rpc/uplink/lab/internal/worldbench"
)

const (
	portal2      = "../testdata/traces/portal2_coop_60hz.csv.gz"
	rocketLeague = "../testdata/traces/rocketleague_solo_30hz.csv.gz"
	twoSeconds   = "../testdata/traces/cubes_delta_data_120.bin.gz"
)

// lab runs a command and returns what it prints.
func lab(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stderr.String())
	}
	return stdout.String()
}

// prints runs a command, which must print these texts, and returns what it prints.
func prints(t *testing.T, args, want []string) string {
	t.Helper()
	said := lab(t, args...)
	for _, text := range want {
		if !strings.Contains(said, text) {
			t.Errorf("%v: no %q in\n%s", args, text, said)
		}
	}
	return said
}

// parse runs a command that prints one value of JSON.
func parse[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	said := lab(t, args...)
	d := json.NewDecoder(strings.NewReader(said))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || d.More() {
		t.Fatalf("%v: %v in\n%s", args, err, said)
	}
	return v
}

// draws reports an error if a file is not a chart with these texts.
func draws(t *testing.T, path string, want ...string) {
	t.Helper()
	svg, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(svg), "NaN") {
		t.Fatalf("%v\n%s", err, svg)
	}
	for _, text := range want {
		if !strings.Contains(string(svg), text) {
			t.Errorf("%s: no %q in\n%s", path, text, svg)
		}
	}
}

// TestAckRate expects more acks to take more down and less up, in all forms of the output.
func TestAckRate(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "a.svg")
	c := parse[ackCurve](t, "ackrate", "--ack-hz", "5,10,30", "--svg", svg, "--json", rocketLeague)
	if !slices.Equal(c.Hz, []float64{5, 10, 30}) || len(c.Up) != 3 || len(c.Batched) != 3 {
		t.Fatalf("%+v", c)
	}
	for i := range c.Up {
		if c.Up[i]+c.Down[i] != c.Sum[i] || i > 0 && (c.Up[i] >= c.Up[i-1] || c.Down[i] <= c.Down[i-1]) {
			t.Errorf("%+v", c)
		}
	}
	if c.Batched[0] <= c.Sum[0] || c.Batched[2] != c.Batched[0] {
		t.Errorf("full frames in the same datagrams: %v", c.Batched)
	}
	draws(t, svg, ">rocketleague_solo_30hz</text>")
	o := ackRateOptions{rates: c.Hz}
	if rows := o.table([]ackCurve{c}); len(rows) != 5 || rows[0][4] != "30 Hz" {
		t.Errorf("%v", rows)
	}
}

func TestDrift(t *testing.T) {
	both := parse[[]drift.Result](t, "drift", "--json", "--distance", "3", rocketLeague, portal2)
	if len(both) != 2 || both[0].Trace != "rocketleague_solo_30hz" || both[1].Distance != 3 {
		t.Fatalf("%+v", both)
	}
	f := both[0].Fields[0]
	if last := f.Spans[len(f.Spans)-1]; f.Name == "" || f.Step <= 0 || last.QuantizeFirst.Max > f.Step || last.Article.Max < f.Step {
		t.Errorf("%+v", f)
	}
	prints(t, []string{"drift", "--distance", "3", rocketLeague}, []string{" frames at 30 Hz, each against the one 3 before it\n", "\nLocation ", " 10 s "})
}

func TestSnapshots(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long")
	}
	prints(t, []string{"snapshots", twoSeconds}, []string{"114 frames of 901 cubes", "+ at rest", "initial state alone", "adaptive, 5 % loss, 100 ms"})
	rows := parse[[]snapbench.Row](t, "snapshots", "--json", twoSeconds)
	if len(rows) != 12 || rows[9].Form != "adaptive" || rows[9].Bytes < 1 {
		t.Errorf("%+v", rows)
	}
}

// TestWorld measures two players over loopback. The figures themselves are those of package
// worldbench.
func TestWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until sessions are idle")
	}
	r := parse[worldbench.Result](t, "world", "--players", "2", "--ticks", "20", "--json", twoSeconds)
	if r.Players != 2 || r.Mismatches != 0 || r.SendRatio <= 0 || r.SnapshotBytes < 5 || r.BytesPerPlayer < 100 || r.BytesPerSession < r.BytesPerPlayer+1000 {
		t.Errorf("%+v", r)
	}
	prints(t, []string{"world", "--players", "1", "--objects", "50", "--ticks", "5", "--rtt", "33ms"},
		[]string{"50 objects at 60 Hz, 5 ticks, round trips of 33 to 33 ms, 2 % loss, seed 1", "encodings", "bare send"})
}

// TestCompare compares on the start of a trace, timed, with charts.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
	}
	dir := t.TempDir()
	c := parse[comparison](t, "compare", "--json", "--frames", "1000", "--output", dir, portal2)
	if len(c.Traces) != 1 || len(c.Traces[0].Schemes) != len(c.Summary.Means) || len(c.Summary.Losses) != 5 {
		t.Fatalf("%+v", c)
	}
	for _, s := range c.Traces[0].Schemes {
		if s.EncodeNs <= 0 || s.DecodeNs <= 0 || len(s.Points) != 5 {
			t.Errorf("%+v", s)
		}
	}
	text := tables(c.Traces, c.Summary)
	for _, want := range []string{"zstd *", "paper +", "adaptive repeated", "equal delivery", "frames a payload", "best *", "first half of the trace"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	draws(t, filepath.Join(dir, "bench-bits.svg"), "20 %", "adaptive")
	draws(t, filepath.Join(dir, "bench-ns.svg"), "decode", "adaptive")
}

func TestCompareWorlds(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until sessions are idle")
	}
	dir := t.TempDir()
	prints(t, []string{"compare-worlds", "--players", "1,3", "--ticks", "10", "--output", dir, twoSeconds}, []string{"\nfull, zstd", "\nquake3", "\nshared"})
	draws(t, filepath.Join(dir, "bench-world.svg"), ">full, zstd<", ">quake3<", ">shared<")
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"ackrate --ack-hz 10,5 " + portal2:         "want ascending rates",
		"ackrate --ack-hz 10 " + portal2:           "want at least two rates",
		"compare --frames 10":                      "--frames 10: want at least 1000",
		"compare --frames 1000 --output nowhere":   "--output: ",
		"compare nothing.csv":                      "nothing.schema.json",
		"compare-worlds --players 0":               "0: want 1 to",
		"drift --distance 0 " + portal2:            "--distance 0: want 1 to 255 frames",
		"interpolation " + twoSeconds:              "want at least ten seconds",
		"jitter --runs 0":                          "want at least 1 of each",
		"snapshots main.go":                        "not a recording of cubes",
		"world --rtt x":                            "--rtt x: want a time",
		"world --rtt 3s":                           "--rtt",
		"world --hostile --ticks 60 " + twoSeconds: "--hostile",
		"no-such": "unknown command",
	} {
		var out strings.Builder
		if err := run(t.Context(), strings.Fields(args), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestDocumentedCommands checks the commands of the pages without running them.
func TestDocumentedCommands(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"*.md", "../README.md", "../docs/*.md", "../docs/design/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile("cd lab && go run \\. ([^`\n)]+)").FindAllStringSubmatch(string(text), -1) {
				checked++
				c, rest, err := newRoot().Find(strings.Fields(m[1]))
				if err == nil {
					if err = c.ParseFlags(rest); err == nil {
						err = c.ValidateArgs(c.Flags().Args())
					}
				}
				if err != nil {
					t.Errorf("%s: %s: %v", page, m[1], err)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d commands", checked)
	}
}
