package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/bench/internal/compare"
)

const one = "../testdata/traces/portal2_coop_60hz.csv.gz"

// TestRun runs the command on the start of a trace, timed, with charts.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
	}
	folder := t.TempDir()
	var stdout, stderr bytes.Buffer
	if err := run(context.Background(), []string{"--frames", "1000", "--output", folder, one}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"zstd *", "paper +", "adaptive repeated", "equal delivery", "frames a payload", "best *", "inferred from the paper's", "first half of the trace"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	if !strings.Contains(stderr.String(), "portal2_coop_60hz: protobuf\n") {
		t.Error(stderr.String())
	}
	for name, want := range map[string]string{"bench-bits.svg": "20 %", "bench-ns.svg": "decode"} {
		svg, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(svg), want) || !strings.Contains(string(svg), "adaptive") || strings.Contains(string(svg), "NaN") {
			t.Errorf("%s: %v\n%s", name, err, svg)
		}
	}
}

func TestJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
	}
	var stdout, stderr bytes.Buffer
	if err := run(context.Background(), []string{"--json", "--frames", "1000", one}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	var said struct {
		Traces  []compare.Result
		Summary compare.Summary
	}
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		t.Fatal(err)
	}
	if len(said.Traces) != 1 || len(said.Traces[0].Schemes) != len(said.Summary.Means) || len(said.Summary.Losses) != 5 {
		t.Errorf("%+v", said)
	}
	for _, s := range said.Traces[0].Schemes {
		if s.EncodeNs <= 0 || s.DecodeNs <= 0 || len(s.Points) != 5 {
			t.Errorf("%+v", s)
		}
	}
}

// TestWorlds compares designs of snapshots, in a table and as JSON, and draws a chart.
func TestWorlds(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until sessions are idle")
	}
	const recording = "../testdata/traces/cubes_delta_data_120.bin.gz"
	folder := t.TempDir()
	var stdout, stderr bytes.Buffer
	if err := run(context.Background(), []string{"--players", "1,3", "--ticks", "10", "--output", folder, recording}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(folder, "bench-world.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"full, zstd", "quake3", "shared"} {
		if !strings.Contains(stdout.String(), "\n"+name) || !strings.Contains(string(svg), ">"+name+"<") {
			t.Errorf("no %s in\n%s", name, stdout.String())
		}
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--frames 10":                           "--frames 10: want at least 1000",
		"--nothing":                             "flag provided but not defined: -nothing",
		"--players 1,x":                         "--players 1,x: want numbers",
		"--players 0":                           "--players 0: want 1 to",
		"nothing.csv":                           "nothing.schema.json",
		"--frames 1000 --output nowhere " + one: "--output: ",
	} {
		var out bytes.Buffer
		err := run(context.Background(), strings.Fields(args), &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	var out bytes.Buffer
	if err := run(context.Background(), []string{"--help"}, &out, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-json") {
		t.Errorf("%v: %s", err, out.String())
	}
}
