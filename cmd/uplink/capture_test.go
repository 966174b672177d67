package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/inspect"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/rerun"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/spectate/spectatetest"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// try runs a command line to its end, and checks its exit code.
func try(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	if got := p.wait(); got != code {
		t.Fatalf("uplink %s: code %d, want %d\n%s%s", strings.Join(args, " "), got, code, p.stdout.String(), p.stderr.String())
	}
	return p.stdout.String(), p.stderr.String()
}

// captured replays a trace to a capturing server, and returns the capture file and the trace.
func captured(t *testing.T) (path string, source *trace.Trace) {
	t.Helper()
	source = slice(t, sample.RocketLeague(), 150, nil)
	path = filepath.Join(t.TempDir(), "out.uplink")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--capture", path, "--ack-hz", "100")
	try(t, 0, "replay", "--to", addr, "--rtt", "20ms", "--loss", "10%", source.Name)
	server.await(&server.stderr, `msg="player disconnected" `)
	server.interrupt()
	if code := server.wait(); code != 0 || !strings.Contains(server.stderr.String(), "files=1 lost=0") {
		t.Fatalf("code %d: %s", code, server.stderr.String())
	}
	return path, source
}

// TestCaptureAsTrace reads a capture with the commands that read recordings.
func TestCaptureAsTrace(t *testing.T) {
	t.Parallel()
	path, source := captured(t)
	traces, err := loadTraces([]string{path}, "")
	must(t, err)
	if len(traces) != 1 || traces[0].Schema.RPC() != source.Schema.RPC() || len(traces[0].Frames) < 120 {
		t.Fatalf("%d plays, %+v", len(traces), traces)
	}
	next := 0 // of the source, from which some frames are missing
	for n := range traces[0].Frames {
		for ; next < len(source.Frames) && !source.Frames[next].Equal(&traces[0].Frames[n]); next++ {
		}
	}
	if next == len(source.Frames) {
		t.Error("the capture has frames that were not sent, or in another order")
	}
	prior := filepath.Join(t.TempDir(), "game.prior")
	for _, args := range [][]string{
		{"bench", "--codec", "adaptive", path}, {"analyze", path}, {"tune", path, "--error", "Location=1"}, {"train", path, "-o", prior},
	} {
		if out, _ := try(t, 0, args...); !strings.Contains(out, " of player ") && args[0] != "tune" && args[0] != "train" {
			t.Errorf("%s: no player in\n%s", args, out)
		}
	}
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name))
	try(t, 0, "bots", "--to", addr, "--players", "2", "--for", "500ms", path)
	if _, said := try(t, 1, "bench", "--schema", trace.SchemaPath(source.Name), path); !strings.Contains(said, "which has its schemas") {
		t.Error(said)
	}
}

// TestCapture makes a bug report of a game, looks into it, and plays it again.
func TestCapture(t *testing.T) {
	t.Parallel()
	path, source := captured(t)

	text, _ := try(t, 0, "inspect", path)
	for _, want := range []string{"file 0 of its series, whole, the last", "unreliable  adaptive", "came to the same as at the server, 0 did not"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	out, _ := try(t, 0, "inspect", path, "--json")
	var sum inspect.Summary
	must(t, json.Unmarshal([]byte(out), &sum))
	frames := sum.RPCs[0].Stats.Frames()
	if frames < 120 || len(sum.Sessions) != 1 || sum.Check.Same == 0 || sum.Sessions[0].Frames != frames {
		t.Fatalf("%+v", sum)
	}

	out, _ = try(t, 0, "inspect", path, "--frames", "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	must(t, err)
	delivered, record := uint64(0), ""
	for _, r := range rows[1:] {
		if r[12] == "" {
			delivered++
			record = r[0]
		}
	}
	if strings.Join(rows[0], ",") != strings.Join(inspect.Header, ",") || delivered != frames {
		t.Errorf("%d rows, %d frames", delivered, frames)
	}
	out, _ = try(t, 0, "inspect", path, "--frames", "--json", "--from", "1ms")
	for line := range strings.Lines(out) {
		var r inspect.Row
		must(t, json.Unmarshal([]byte(line), &r))
		if r.Check != "same" {
			t.Errorf("%+v", r)
		}
	}
	if out, _ = try(t, 0, "inspect", path, "--frames"); strings.Count(out, "\n") != len(rows) {
		t.Errorf("%s", out)
	}

	out, _ = try(t, 0, "inspect", path, "--explain", record)
	if !strings.Contains(out, "decoded again it came to the same, bit for bit") || !strings.Contains(out, "distance to the baseline: ") {
		t.Errorf("%s", out)
	}
	out, _ = try(t, 0, "inspect", path, "--explain", record, "--json")
	var e inspect.Explained
	if must(t, json.Unmarshal([]byte(out), &e)); len(e.Lines) < 20 {
		t.Errorf("%+v", e)
	}

	if out, _ = try(t, 0, "replay-capture", path, "--self", "--speed", "10"); !strings.Contains(out, "decoded as recorded, 0 differently, 0 missing.") {
		t.Errorf("%s", out)
	}
	second := filepath.Join(t.TempDir(), "again.uplink")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--capture", second)
	out, _ = try(t, 0, "replay-capture", path, "--to", addr, "--json")
	var played rerun.Report
	if must(t, json.Unmarshal([]byte(out), &played)); played.Failed != 0 || played.Datagrams == 0 {
		t.Errorf("%+v", played)
	}
	server.await(&server.stderr, `msg="player disconnected" `)
	server.interrupt()
	server.wait()
	out, _ = try(t, 0, "inspect", second, "--json")
	var again inspect.Summary
	if must(t, json.Unmarshal([]byte(out), &again)); again.RPCs[0].Stats.Frames() != frames {
		t.Errorf("%d frames came again, %d before", again.RPCs[0].Stats.Frames(), frames)
	}
}

// TestCaptureWorld shows a recorded world.
func TestCaptureWorld(t *testing.T) {
	t.Parallel()
	offer, datagrams := spectatetest.Messages(t, 30)
	c := spectatetest.New()
	c.Message(offer)
	for _, b := range datagrams {
		c.Datagram(b)
	}
	path := filepath.Join(t.TempDir(), "out.uplink")
	must(t, os.WriteFile(path, c.File(), 0o600))
	out, _ := try(t, 0, "replay-capture", path, "--world", "town")
	want := "tick 29 at 0.300 s: 1 objects\n  town 0.0 At=[14.5 0] Name=car\n30 snapshots of town to player 1; 0 could not be decoded.\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("%q is not the end of\n%s", want, out)
	}
	out, _ = try(t, 0, "replay-capture", path, "--world", "town", "--json")
	if want := `{"world":"town","player":1,"seconds":0.3,"tick":29,"objects":[{"type":"town","id":0,"generation":0,"fields":{"At":[14.5,0],"Name":"car"}}]}`; !strings.HasSuffix(out, want+"\n") {
		t.Errorf("%q is not the end of\n%s", want, out)
	}
	for world, want := range map[string]string{
		"moon": "it has no offer of the world moon\nhint: it has offers of [\"town\"]",
		"town": "it has no offer of the world town to player 2\nhint: uplink inspect ",
	} {
		player := map[string]string{"moon": "0", "town": "2"}[world]
		if _, text := try(t, 1, "replay-capture", path, "--world", world, "--player", player); !strings.Contains(text, want) {
			t.Errorf("%s", text)
		}
	}
}

// TestCaptureDamage shows what is before the damage of files, says where it is, and fails.
func TestCaptureDamage(t *testing.T) {
	t.Parallel()
	path, source := captured(t)
	data, err := os.ReadFile(path)
	must(t, err)
	bad := filepath.Join(t.TempDir(), "bad.uplink")
	half := len(data) / 2
	for name, c := range map[string]struct {
		data  []byte
		shown bool
		want  string
	}{
		"cut":     {data[:half], true, "the file is cut off"},
		"no end":  {data[:len(data)-9], true, "the file is cut off"},
		"damaged": {append(append([]byte(nil), data[:half]...), make([]byte, half)...), true, "the file is damaged"},
		"empty":   {nil, false, "not a capture file"},
		"foreign": {[]byte("frame,time\n1,2\n"), false, "not a capture file"},
		"version": {append([]byte("\x89uplink\x07"), data[8:]...), false, "version 7, want 1"},
	} {
		must(t, os.WriteFile(bad, c.data, 0o600))
		out, text := try(t, 1, "inspect", bad)
		if shown := strings.Contains(out, " did not.\n"); shown != c.shown || !strings.Contains(text, c.want) || !strings.Contains(text, ": at byte ") || !strings.Contains(text, "\nhint: ") {
			t.Errorf("%s: %s%s", name, out, text)
		}
		if out, text = try(t, 1, "replay-capture", bad, "--self", "--speed", "10"); strings.Contains(out, "1 sessions played") != c.shown || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s%s", name, out, text)
		}
	}
	if _, text := try(t, 1, "inspect", filepath.Join(t.TempDir(), "none")); !strings.Contains(text, "hint: uplink ds --capture") {
		t.Errorf("%s", text)
	}
	if _, text := try(t, 1, "inspect", path, "--explain", "999999"); !strings.Contains(text, "there is no record 999999") {
		t.Errorf("%s", text)
	}
	_, text := try(t, 1, "ds", "--schema", trace.SchemaPath(source.Name), "--listen", "127.0.0.1:0", "--capture", filepath.Join(bad, "x"))
	if !strings.Contains(text, "--capture: ") {
		t.Errorf("%s", text)
	}
}

// TestCaptureDemo captures the demo to a row of files.
func TestCaptureDemo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo.uplink")
	p := start(t, "demo", "--clients", "32", "--rtt", "10ms", "--capture", path, "--capture-max", "64KB", "--capture-keep", "1000")
	for { // until the second file is full
		if _, err := os.Stat(capture.FileName(path, 2)); err == nil {
			break
		}
		select {
		case <-p.done:
			t.Fatalf("the demo ended before it filled two files: %s%s", p.stdout.String(), p.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.interrupt()
	if code := p.wait(); code != 0 {
		t.Fatalf("code %d: %s", code, p.stderr.String())
	}
	try(t, 0, "inspect", path)
	if out, _ := try(t, 0, "inspect", capture.FileName(path, 1)); !strings.Contains(out, "payloads could not be: they refer to what is in an earlier file") {
		t.Errorf("%s", out)
	}
	if out, _ := try(t, 0, "replay-capture", path, "--self", "--speed", "20"); !strings.Contains(out, "32 sessions played") {
		t.Errorf("%s", out)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"256MB": 256 << 20, "1gb": 1 << 30, "64KB": 64 << 10, "70000": 70000, "12B": 12} {
		var s byteSize
		must(t, s.Set(text))
		var again byteSize
		must(t, again.Set(s.String()))
		if s != want || again != s {
			t.Errorf("%s is %d, again %d", text, s, again)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1.5MB", "1TB", "99999999999GB"} {
		var s byteSize
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}

// TestUntilDone: Ctrl-C ends reading.
func TestUntilDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := untilDone{ctx, strings.NewReader("text")}
	if n, err := r.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	cancel()
	if n, err := r.Read(make([]byte, 2)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", n, err)
	}
}
