package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/decrypt"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demo"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/soak"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/visits"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// parse runs a command line that ends, and reads what it prints as one value of JSON.
func parse[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	code, stdout, stderr := uplink(t, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("uplink %s: code %d: %s", strings.Join(args, " "), code, stderr)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || d.More() {
		t.Fatalf("uplink %s: %v in\n%s", strings.Join(args, " "), err, stdout)
	}
	return v
}

// TestEveryCommandHasJSON: every command that prints figures also prints JSON.
func TestEveryCommandHasJSON(t *testing.T) {
	without := []string{"backend", "completion", "help", "man"} // they print no figures
	for _, c := range newRoot(&profiler{}).Commands() {
		if c.Flags().Lookup("json") == nil && !c.Hidden && !slices.Contains(without, c.Name()) {
			t.Errorf("%s has no --json", c.Name())
		}
	}
}

func TestTrainJSON(t *testing.T) {
	source := slice(t, sample.Portal2(), 300, nil)
	file := filepath.Join(t.TempDir(), "a.prior")
	made := parse[trained](t, "train", "--json", "-o", file, source.Name)
	if made.File != file || len(made.Prior) != 16 || made.Frames != 300 || len(made.Traces) != 1 || made.Traces[0].RPC != "ServerMove" || made.Fields == 0 || made.Bytes == 0 {
		t.Errorf("%+v", made)
	}
	worth := parse[results](t, "train", "--json", "--halves", "--distance", "6", source.Name)
	if len(worth.Candidates) != 3 || len(worth.Traces) != 1 || worth.Traces[0].Whole["trained"] <= 0 || worth.Mean.Whole["trained"] == 0 || worth.Mean.First["built-in"] == 0 {
		t.Errorf("%+v", worth)
	}
}

func TestReplayJSON(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 50, nil)
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name))
	s := parse[sent](t, "replay", "--to", addr, "--json", source.Name)
	if s.RPC != "ServerMove" || s.Frames != 50 || s.Full <= 0 || s.Sent <= 0 || s.Skipped != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDemoJSON: lines of JSON, and nothing else.
func TestDemoJSON(t *testing.T) {
	code, stdout, stderr := uplink(t, "demo", "--json", "--rtt", "10ms", "--for", "1200ms")
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i, text := range lines {
		var l demo.Line
		must(t, json.Unmarshal([]byte(text), &l))
		if l.Whole != (i == len(lines)-1) || l.Seconds < 0.5 || len(l.RPCs) != 2 || l.RPCs[0].RPC != "PortalMove" || l.Total.Full <= l.Total.Sent || l.Total.Wire <= l.Total.Sent {
			t.Errorf("line %d: %s", i, text)
		}
	}
	if len(lines) < 2 {
		t.Errorf("%d lines", len(lines))
	}
}

// TestSoakJSON reads the first phase of a soak.
func TestSoakJSON(t *testing.T) {
	t.Parallel()
	source := slice(t, sample.Portal2(), 100, nil)
	p := start(t, "soak", "--for", "1m", "--phase", "3s", "--players", "3", "--json", source.Name)
	text := p.await(&p.stdout, `(.*)\n`)[1]
	var phase soak.Phase
	must(t, json.Unmarshal([]byte(text), &phase))
	if phase.Number != 1 || phase.Condition != "loss 2 %" || phase.Players != 3 || phase.Frames == 0 || phase.Usage.Goroutines == 0 {
		t.Errorf("%s", text)
	}
}

// TestJSONIsDocumented: operations.md names each key that a command prints, and no other one.
func TestJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	_, figures, _ := strings.Cut(string(text), "\n## Figures for programs\n")
	for command, printed := range map[string][]any{
		"decrypt": {decrypt.Counts{}}, "demo": {demo.Line{}}, "replay": {sent{}}, "soak": {soak.Phase{}, visits.Result{}},
		"train": {trained{}, results{}}, "version": {build{}},
	} {
		row := regexp.MustCompile("(?m)^\\| `" + command + "` \\| (.*) \\|$").FindStringSubmatch(figures)
		if row == nil {
			t.Errorf("no row for %s", command)
			continue
		}
		var there, documented []string
		for _, v := range printed {
			there = appendKeys(there, reflect.TypeOf(v))
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, m[1])
		}
		slices.Sort(there)
		slices.Sort(documented)
		if there, documented = slices.Compact(there), slices.Compact(documented); !slices.Equal(there, documented) {
			t.Errorf("%s prints     %q\nand documented is %q", command, there, documented)
		}
	}
}

// appendKeys appends the keys of a type as JSON.
func appendKeys(keys []string, of reflect.Type) []string {
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return keys
	}
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
			keys = appendKeys(append(keys, name), of.Field(i).Type)
		}
	}
	return keys
}
