package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestGenericPrior makes the built-in prior again: it is what this command makes of the traces in the repository.
func TestGenericPrior(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on whole traces")
	}
	traces, err := filepath.Glob("../../testdata/traces/*.csv.gz")
	must(t, err)
	out := filepath.Join(t.TempDir(), "generic.prior")
	code, stdout, stderr := uplink(t, slices.Concat([]string{"train", "--generic", "-o", out}, traces)...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	got, err := os.ReadFile(out)
	must(t, err)
	if !bytes.Equal(got, rpcdelta.GenericPrior().Append(nil)) {
		t.Errorf("the traces give another prior, %s"+
			"make it again: go run ./cmd/uplink train --generic testdata/traces/*.csv.gz -o rpcdelta/internal/adaptive/generic.prior", stdout)
	}
}

// trainOn makes a prior and gives its path and its hash.
func trainOn(t *testing.T, traces ...string) (path, hash string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "game.prior")
	code, stdout, stderr := uplink(t, append([]string{"train", "-o", path}, traces...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	m := regexp.MustCompile(`prior ([0-9a-f]{16}), of \d+ frames; knows 8 fields, \d+ bytes\n$`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatalf("got %q", stdout)
	}
	return path, m[1]
}

// TestTrainAndBench trains on a trace and codes it.
func TestTrainAndBench(t *testing.T) {
	first := slice(t, sample.Portal2(), 600, nil).Name
	prior, hash := trainOn(t, first)
	payload := func(args ...string) string {
		code, stdout, stderr := uplink(t, append([]string{"bench", "--codec", "adaptive", "--distance", "6", first}, args...)...)
		if code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		if with := len(args) > 0; strings.Contains(stdout, "prior "+hash) != with {
			t.Errorf("with a prior: %v, but it says\n%s", with, stdout)
		}
		return regexp.MustCompile(`\nadaptive +\S+ +(\S+)`).FindStringSubmatch(stdout)[1]
	}
	if without, with := payload(), payload("--prior", prior); len(with) > len(without) || len(with) == len(without) && with >= without {
		t.Errorf("%s bits without the prior, %s with it", without, with)
	}
}

// TestJudge shows all columns, and a gain where the fields are the same.
func TestJudge(t *testing.T) {
	one, two := slice(t, sample.Portal2(), 700, nil).Name, slice(t, sample.RocketLeague(), 500, nil).Name
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--leave-one-out", one, two}, []string{"untrained  built-in  generic  trained", "\nslice ", "\ngeometric mean", "RTT 100ms"}},
		{[]string{"--halves", "--distance", "6", one}, []string{"built-in  generic  trained", "\nslice              350 ", "against the one 6 before it"}},
	} {
		code, stdout, stderr := uplink(t, append([]string{"train"}, c.args...)...)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d: %s", code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("no %q in\n%s", want, stdout)
			}
		}
	}
}

// TestReplayPrior plays to servers that have the prior and have not.
func TestReplayPrior(t *testing.T) {
	source := slice(t, sample.Portal2(), 150, nil)
	prior, hash := trainOn(t, source.Name)
	for _, known := range []bool{true, false} {
		args := []string{"--schema", strings.TrimSuffix(source.Name, ".csv") + ".schema.json"}
		if known {
			args = append(args, "--prior", prior)
		}
		server, addr := startDS(t, args...)
		code, stdout, stderr := uplink(t, "replay", "--to", addr, "--codec", "adaptive", "--prior", prior, source.Name)
		if code != 0 || strings.Contains(stderr, "prior not known") == known {
			t.Fatalf("code %d: %s", code, stderr)
		}
		server.interrupt()
		server.wait()
		if strings.Contains(stdout, "does not have the prior") == known || strings.Contains(server.stderr.String(), "prior="+hash) == known {
			t.Errorf("known: %v, but\n%s%s", known, stdout, server.stderr.String())
		}
	}
}

func TestTrainErrors(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.prior")
	must(t, os.WriteFile(broken, []byte("no prior"), 0o600))
	const hint, makes = "hint: uplink train --help\n", "hint: uplink train TRACE... -o FILE writes a prior\n"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"train", 2, "uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json\n" + hint},
		{"train a.csv", 2, "uplink: --output: name the file for the prior\n" + hint},
		{"train a.csv --leave-one-out", 2, "uplink: --leave-one-out: want at least two traces\n" + hint},
		{"train a.csv b.csv --leave-one-out --halves", 2, "uplink: --leave-one-out and --halves: choose one\n" + hint},
		{"train a.csv --halves -o x", 2, "uplink: --output: nothing is written with --leave-one-out or --halves; leave one of them out\n" + hint},
		{"train a.csv --halves --generic", 2, "uplink: --generic: --leave-one-out and --halves include it; leave it out\n" + hint},
		{"train a.csv --halves --distance 0", 2, "uplink: --distance 0: want at least 1 frame\n" + hint},
		{"train a.csv --halves --distance 64", 2, "uplink: --distance 64: want less than --ring 64\n" + hint},
		{"train a.csv -o x --distance 3", 2, "uplink: --distance: it needs --leave-one-out or --halves\n" + hint},
		{"train -o " + dir + " " + portal2, 1, "uplink: --output: open " + dir + ": is a directory\n"},
		{"bench --prior " + broken + " " + portal2, 1, "uplink: --prior " + broken + ": rpcdelta: prior: not a usable prior: it does not begin as one\n" + makes},
		{"bench --prior " + dir + "/none " + portal2, 1, "uplink: --prior: open " + dir + "/none: no such file or directory\n"},
		{"replay --codec adaptive --prior " + broken + " " + portal2, 1, "uplink: --prior " + broken + ": rpcdelta: prior: not a usable prior: it does not begin as one\n" + makes},
		{"ds --schema x --prior " + broken, 1, "uplink: --prior " + broken + ": rpcdelta: prior: not a usable prior: it does not begin as one\n" + makes},
	} {
		code, stdout, stderr := uplink(t, strings.Fields(c.args)...)
		if code != c.code || stderr != c.want || stdout != "" {
			t.Errorf("uplink %s: code %d, want %d\ngot  %swant %s%s", c.args, code, c.code, stderr, c.want, stdout)
		}
	}
}

// TestPriorOfOtherCodecs says that they have no use for one.
func TestPriorOfOtherCodecs(t *testing.T) {
	prior, _ := trainOn(t, slice(t, sample.Portal2(), 100, nil).Name)
	for _, command := range []string{"bench --codec rle", "replay --codec rle"} {
		code, _, stderr := uplink(t, append(strings.Fields(command), "--prior", prior, portal2)...)
		if code != 2 || !strings.Contains(stderr, "--prior: only --codec adaptive starts from one\n") {
			t.Errorf("uplink %s: code %d: %s", command, code, stderr)
		}
	}
}
