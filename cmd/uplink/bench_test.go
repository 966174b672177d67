package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/sample"
)

const (
	portal2      = "../../internal/sample/" + sample.Portal2Name + ".csv.gz"
	rocketLeague = "../../internal/sample/" + sample.RocketLeagueName + ".csv.gz"
)

// computes skips a test with -short, as the race detector has it, that only computes for long.
func computes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it computes for long")
	}
}

// uplink runs a command line.
func uplink(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "Available Commands:\n"},
		{"--help", "bench "},
		{"--version", "uplink version "},
		{"bench --help", "--distance 6 --codec rle --json"},
	} {
		code, stdout, stderr := uplink(t, strings.Fields(c.args)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, c.want) {
			t.Errorf("uplink %s: code %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

// TestBenchTable: the table says how it was measured, and the parts add up to the bytes on the
// wire.
func TestBenchTable(t *testing.T) {
	const (
		begin    = "rocketleague_solo_30hz: 1800 frames at 30 Hz, 60 s; "
		noLink   = begin + "no link, each frame against the one 3 before it"
		gcm      = "; encrypted with gcm, 16 bytes per datagram"
		compact  = "; encrypted with compact, 8 bytes per datagram"
		repeated = "; 600 frames in all, the trace repeated; without the first 1s of each"
	)
	for args, want := range map[string]string{
		"--loss 5%": begin + "RTT 100ms, jitter 0s, loss 5 % in bursts of 1, acks when they pay, seed 1" + gcm,
		"--seeds 2 --frames 600 --warmup 1s": begin +
			"RTT 100ms, jitter 0s, loss 0 % in bursts of 1, acks when they pay, seeds 1 to 2" + gcm + repeated,
		"--distance 3 --suite compact":         noLink + compact,
		"--distance 3 --suite aes128ctr-hmac8": noLink + compact,
		"--distance 3 --suite none":            noLink + "; not encrypted",
	} {
		code, stdout, stderr := uplink(t, append(strings.Fields("bench --codec rle "+args), rocketLeague)...)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d: %s", code, stderr)
		}
		lines := strings.Split(stdout, "\n")
		if lines[0] != want || !strings.HasSuffix(stdout, benchNotes) {
			t.Errorf("got  %s\nwant %s", stdout, want)
		}
		names, numbers := strings.Fields(strings.ReplaceAll(lines[3], "IP, UDP", "IP,UDP")), strings.Fields(strings.ReplaceAll(lines[4], " %", "%"))
		if len(names) != 20 || len(numbers) != len(names) || numbers[0] != "rle" || numbers[slices.Index(names, "wrong")] != "0" {
			t.Errorf("%q\n%q", names, numbers)
		}
		if times := numbers[17:]; slices.Equal(times, []string{"-", "-", "-"}) != strings.Contains(args, "seeds") {
			t.Errorf("%s: times %q", args, times)
		}
		sum := 0.0
		for i, cell := range numbers[2:8] {
			v, err := strconv.ParseFloat(cell, 64)
			must(t, err)
			if i == 5 {
				v = -v // wire, of which the others are the parts
			}
			sum += v
		}
		if math.Abs(sum) > 0.31 { // each is rounded
			t.Errorf("%s: the parts are off by %v: %q", args, sum, numbers)
		}
	}
}

// TestBenchPresets: each preset has a row, named after it.
func TestBenchPresets(t *testing.T) {
	code, stdout, stderr := uplink(t, strings.Fields("bench --codec rle,adaptive --preset Balanced,lowlatency --downlink 20 --frames 600 "+rocketLeague)...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	lines := strings.Split(stdout, "\n")
	const want = ", acks on 20 datagrams a second of the server, seed 1; encrypted with gcm, 16 bytes per datagram, presets with the suite of each; "
	if !strings.Contains(lines[0], want) {
		t.Errorf("%s, want %s", lines[0], want)
	}
	for i, name := range []string{"rle ", "balanced ", "low-latency "} {
		if !strings.HasPrefix(lines[4+i], name) {
			t.Errorf("%q, want %s", lines[4+i], name)
		}
	}
}

// TestBenchMeans: the last table has the geometric means, also of the wire ratios.
func TestBenchMeans(t *testing.T) {
	of := func(bits, ratio float64) *bench.Result {
		return &bench.Result{Codecs: []bench.Counts{{Name: "rle", PayloadBits: 4, DeliveredRatio: 1, WireRatio: 1}, {Name: "adaptive", PayloadBits: bits, DeliveredRatio: 0.5, WireRatio: ratio}}}
	}
	got := meansTable([]*bench.Result{of(1, 0.25), of(4, 1)})
	want := []string{"adaptive", "2.0", "0.500", "0.500", "50.000 %", "0"}
	if last := got[len(got)-1]; !slices.Equal(last, want) {
		t.Errorf("%q, want %q", last, want)
	}
}

func TestBenchJSON(t *testing.T) {
	computes(t)
	one := parse[bench.Result](t, "bench", "--json", "--distance", "6", portal2)
	if one.Suite != "aes128gcm" || one.Trace != sample.Portal2Name || one.Frames != 3600 || one.Distance != 6 || one.Link != nil || len(one.Codecs) != 3 {
		t.Errorf("%+v", one)
	}
	several := parse[[]bench.Result](t, "bench", "--json", "--codec", "rle", portal2, rocketLeague)
	if len(several) != 2 || several[1].Trace != sample.RocketLeagueName || several[1].Link == nil || several[1].Link.RTTMs != 100 {
		t.Errorf("%+v", several)
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

// TestBenchFields: what fields take adds up to the payload, in the table and in the picture.
func TestBenchFields(t *testing.T) {
	computes(t)
	svg := filepath.Join(t.TempDir(), "fields.svg")
	args := strings.Fields("bench --json --fields --codec rle,adaptive --redundancy off --distance 3 --svg")
	r := parse[bench.Result](t, append(args, svg, rocketLeague)...)
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
	code, stdout, _ := uplink(t, "bench", "--fields", "--codec", "adaptive", rocketLeague)
	if code != 0 || !strings.Contains(stdout, "field of adaptive") || !strings.Contains(stdout, "whole bytes, frame count") {
		t.Errorf("%d: %s", code, stdout)
	}
}

// TestBenchList: a listed frame has the parts that its payload has, and a baseline only of a frame
// that arrived.
func TestBenchList(t *testing.T) {
	const rows = 300
	result := parse[bench.Result](t, "bench", "--codec", "rle,paper", "--list", strconv.Itoa(rows), "--loss", "10%", "--json", portal2)
	for _, c := range result.Codecs {
		lost, deltas := 0, 0
		for n, l := range c.Listed {
			if int(l.Seq) != n || (l.NumberBits+7)/8+l.RLEBytes != l.PayloadBits/8 || l.HeaderBits == 0 || l.FullBits == 0 || l.XORBytes == 0 {
				t.Errorf("%s: %+v", c.Name, l)
			}
			if !l.Arrived {
				lost++
			}
			if l.Baseline != nil {
				deltas++
				if *l.Baseline >= l.Seq || !c.Listed[*l.Baseline].Arrived {
					t.Errorf("%s: frame %d has baseline %d", c.Name, n, *l.Baseline)
				}
			}
		}
		if len(c.Listed) != rows || lost < rows/20 || lost > rows/5 || deltas < rows*3/4 {
			t.Errorf("%s: %d frames listed, %d lost, %d with a baseline", c.Name, len(c.Listed), lost, deltas)
		}
	}
	for _, args := range []string{"--list 3 --codec adaptive", "--list 3 --codec rle --seeds 2", "--list -1 --codec rle"} {
		if code, _, stderr := uplink(t, append([]string{"bench", portal2}, strings.Fields(args)...)...); code != 2 || !strings.Contains(stderr, "--list") {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
}
