package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/trace/sample"
)

const (
	portal2      = "../../trace/sample/" + sample.Portal2Name + ".csv.gz"
	rocketLeague = "../../trace/sample/" + sample.RocketLeagueName + ".csv.gz"
)

// uplink runs a command line.
func uplink(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommandLineErrors(t *testing.T) {
	dir := t.TempDir()
	alone := filepath.Join(dir, "alone.csv")
	ragged := filepath.Join(dir, "ragged.csv")
	for path, text := range map[string]string{
		alone:                                    "x\n1\n",
		ragged:                                   "x,y\n1,2\n3\n",
		filepath.Join(dir, "ragged.schema.json"): `{"rpc": "Move", "rate_hz": 60, "fields": [{"name": "X", "kind": "scalar", "columns": ["x"], "resolution": 1}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const benchHint = "hint: uplink bench --help\n"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"bensh", 2, "uplink: unknown command \"bensh\"; did you mean bench?\nhint: uplink --help\n"},
		{"--verbose", 2, "uplink: unknown flag: --verbose\nhint: uplink --help\n"},
		{"bench", 2, "uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json\n" + benchHint},
		{"bench a.csv --los 1", 2, "uplink: unknown flag: --los; did you mean --loss?\n" + benchHint},
		{"bench a.csv --loss 5", 2, "uplink: invalid argument \"5\" for \"--loss\" flag: want 0 to 1, or a percentage such as 5%\n" + benchHint},
		{"bench a.csv --loss x%", 2, "uplink: invalid argument \"x%\" for \"--loss\" flag: want 0 to 1, or a percentage such as 5%\n" + benchHint},
		{"bench a.csv --ack-hz 0", 2, "uplink: --ack-hz 0: want more than 0 and at most 1000 acks a second\n" + benchHint},
		{"bench a.csv --rtt -5ms", 2, "uplink: --rtt -5ms: want 0s to 1m0s\n" + benchHint},
		{"bench a.csv --svg x.svg", 2, "uplink: --svg: want --fields, which it draws\n" + benchHint},
		{"bench a.csv --fields --seeds 2", 2, "uplink: --fields: want the trace once, without --seeds, --frames and --warmup\n" + benchHint},
		{"bench a.csv --fields --codec rle", 2, "uplink: --fields: want adaptive among --codec\n" + benchHint},
		{"bench a.csv --seeds 0 --frames -1", 2, "uplink: --frames -1: want 0 to 1000000000\n" + benchHint},
		{"bench a.csv --suite rot13", 2, "uplink: invalid argument \"rot13\" for \"--suite\" flag: want gcm, compact or none\n" + benchHint},
		{"bench a.csv --codec zip", 2, "uplink: --codec \"zip\": want some of paper, rle, adaptive\n" + benchHint},
		{"bench a.csv --distance 0", 2, "uplink: --distance 0: want at least 1 frame\n" + benchHint},
		{"bench a.csv --distance -1", 2, "uplink: --distance -1: want 1 to 255 frames\n" + benchHint},
		{"bench a.csv --distance 6 --loss 1%", 2, "uplink: --loss: there is no link with --distance; leave one of them out\n" + benchHint},
		{"drift a.csv --distance 0", 2, "uplink: --distance 0: want 1 to 255 frames\nhint: uplink drift --help\n"},
		{"bench " + alone, 1, "uplink: trace: schema file: open " + dir + "/alone.schema.json: no such file or directory\nhint: a trace needs a schema in NAME.schema.json, or in the file of --schema\n"},
		{"bench " + dir + "/none.csv --schema " + dir + "/ragged.schema.json", 1, "uplink: trace: open " + dir + "/none.csv: no such file or directory\n"},
		{"bench " + ragged, 1, "uplink: trace: " + ragged + ": row 2 (line 3): 1 cells, want 2 as in the header\n"},
		{"drift " + ragged, 1, "uplink: trace: " + ragged + ": row 2 (line 3): 1 cells, want 2 as in the header\n"},
	} {
		code, stdout, stderr := uplink(t, strings.Fields(c.args)...)
		if code != c.code || stderr != c.want || stdout != "" {
			t.Errorf("uplink %s: code %d, want %d\ngot  %swant %s%s", c.args, code, c.code, stderr, c.want, stdout)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "Available Commands:\n"},
		{"--help", "bench "},
		{"--version", "uplink version "},
		{"bench --help", "--distance 6 --codec rle --json"},
		{"drift --help", "uplink drift --distance 3"},
	} {
		code, stdout, stderr := uplink(t, strings.Fields(c.args)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, c.want) {
			t.Errorf("uplink %s: code %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

func TestBenchTable(t *testing.T) {
	code, stdout, stderr := uplink(t, "bench", "--loss", "5%", "--codec", "rle", rocketLeague)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	lines := strings.Split(stdout, "\n")
	if want := "rocketleague_solo_30hz: 1800 frames at 30 Hz, 60 s; RTT 100ms, jitter 0s, loss 5 % in bursts of 1, acks at 60 Hz, seed 1; encrypted with gcm, 16 bytes per datagram"; lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	names, numbers := strings.Fields(strings.ReplaceAll(lines[3], "IP, UDP", "IP,UDP")), strings.Fields(strings.ReplaceAll(lines[4], " %", "%"))
	if len(names) != 20 || len(numbers) != len(names) || numbers[0] != "rle" || numbers[slices.Index(names, "wrong")] != "0" {
		t.Errorf("%q\n%q", names, numbers)
	}
	if !strings.HasSuffix(stdout, benchNotes) {
		t.Errorf("no notes below\n%s", stdout)
	}
}

// TestBenchSeeds: the table says what it is the mean of, and shows no times that nobody took.
func TestBenchSeeds(t *testing.T) {
	code, stdout, stderr := uplink(t, "bench", "--loss", "5%", "--codec", "rle", "--seeds", "2", "--frames", "600", "--warmup", "1s", rocketLeague)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	lines := strings.Split(stdout, "\n")
	if want := "seeds 1 to 2; encrypted with gcm, 16 bytes per datagram; 600 frames of it, repeated, in all; the first 1s of each left out"; !strings.HasSuffix(lines[0], want) {
		t.Errorf("got  %s\nwant ... %s", lines[0], want)
	}
	if numbers := strings.Fields(lines[4]); !slices.Equal(numbers[len(numbers)-3:], []string{"-", "-", "-"}) {
		t.Errorf("times: %q", numbers)
	}
}

// TestBenchParts adds up the parts of what goes over the wire, with each suite.
func TestBenchParts(t *testing.T) {
	for suite, want := range map[string]string{
		"gcm": "; encrypted with gcm, 16 bytes per datagram", "compact": "; sealed by compact, 8 bytes a datagram",
		"aes128ctr-hmac8": "; sealed by compact, 8 bytes a datagram", "none": "; not sealed",
	} {
		code, stdout, stderr := uplink(t, "bench", "--distance", "3", "--codec", "rle", "--suite", suite, rocketLeague)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d: %s", code, stderr)
		}
		lines := strings.Split(stdout, "\n")
		if !strings.HasSuffix(lines[0], want) {
			t.Errorf("got  %s\nwant ...%s", lines[0], want)
		}
		sum := 0.0
		numbers := strings.Fields(lines[4])
		for i, cell := range numbers[2:8] {
			v, err := strconv.ParseFloat(cell, 64)
			must(t, err)
			if i == 5 {
				v = -v // wire, of which the others are the parts
			}
			sum += v
		}
		if math.Abs(sum) > 0.31 { // each is rounded
			t.Errorf("%s: the parts are off by %v: %q", suite, sum, numbers)
		}
	}
}

func TestBenchJSON(t *testing.T) {
	code, stdout, stderr := uplink(t, "bench", "--json", "--distance", "6", portal2)
	var one bench.Result
	if err := json.Unmarshal([]byte(stdout), &one); err != nil || code != 0 || stderr != "" {
		t.Fatalf("code %d: %v: %s", code, err, stderr)
	}
	if one.Suite != "aes128gcm" || one.Trace != sample.Portal2Name || one.Frames != 3600 || one.Distance != 6 || one.Link != nil || len(one.Codecs) != 3 {
		t.Errorf("%+v", one)
	}
	code, stdout, stderr = uplink(t, "bench", "--json", "--codec", "rle", portal2, rocketLeague)
	var several []bench.Result
	if err := json.Unmarshal([]byte(stdout), &several); err != nil || code != 0 || stderr != "" {
		t.Fatalf("code %d: %v: %s", code, err, stderr)
	}
	if len(several) != 2 || several[1].Trace != sample.RocketLeagueName || several[1].Link == nil || several[1].Link.RTTMs != 100 {
		t.Errorf("%+v", several)
	}
}

func TestDriftTable(t *testing.T) {
	code, stdout, stderr := uplink(t, "drift", "--distance", "3", rocketLeague)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, want := range []string{"1800 frames at 30 Hz, each against the one 3 before it\n", "\nLocation ", " 60 s "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"bench", portal2}, &out, &errs); code != 1 || errs.String() != "uplink: interrupted\n" || out.Len() != 0 {
		t.Errorf("code %d, %q", code, errs.String())
	}
}

// TestBenchFields: what fields take adds up to the payload, in the table and in the
// picture.
func TestBenchFields(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "fields.svg")
	code, stdout, stderr := uplink(t, "bench", "--json", "--fields", "--svg", svg, "--codec", "rle,adaptive", "--redundancy", "off", "--distance", "3", rocketLeague)
	if code != 0 {
		t.Fatal(stderr)
	}
	var r bench.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	c := r.Codecs[1]
	var full, payload float64
	for _, f := range c.Fields {
		full, payload = full+f.FullBits, payload+f.PayloadBits
	}
	if len(r.Codecs[0].Fields) != 0 || len(c.Fields) == 0 || math.Abs(full-c.FullBits) > 0.01 || payload > c.PayloadBits || payload < c.PayloadBits-8 {
		t.Errorf("%+v: %v full, %v in payloads", c, full, payload)
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(picture), c.Fields[0].Name) {
		t.Errorf("%s, %v", picture, err)
	}
	code, stdout, _ = uplink(t, "bench", "--fields", "--codec", "adaptive", rocketLeague)
	if code != 0 || !strings.Contains(stdout, "field of adaptive") || !strings.Contains(stdout, "whole bytes, frame count") {
		t.Errorf("%d: %s", code, stdout)
	}
}
