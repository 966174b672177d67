package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/sample"
)

// TestGenericPrior makes the built-in prior again: it is what this command makes of the traces in
// the repository.
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
	if !bytes.Equal(got, prior.Generic().Append(nil)) {
		t.Errorf("the traces give another prior, %s"+
			"make it again: go run ./cmd/uplink train --generic testdata/traces/*.csv.gz -o internal/rpcdelta/adaptive/generic.prior", stdout)
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
	m := regexp.MustCompile(`prior ([0-9a-f]{16}), from \d+ frames; 8 fields, \d+ bytes\n$`).FindStringSubmatch(stdout)
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
