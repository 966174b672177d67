package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/dsreport"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// TestSoakInterrupted begins a soak of real sockets with traces of its own.
func TestSoakInterrupted(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 100, nil)
	p := start(t, "soak", "--for", "1m", "--phase", "3s", "--players", "3", source.Name)
	p.await(&p.stdout, `  1 loss 2 % +[0-3]/3 players, `)
	p.interrupt()
	if code := p.wait(); code != 1 || strings.Contains(p.stdout.String(), "no failures") {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

// TestSoakHostile attacks a server in its own process with hostile clients until it is interrupted.
func TestSoakHostile(t *testing.T) {
	p := start(t, "soak", "--hostile", "2", "--kinds", "refused-binds,resets", "--players", "1", "--for", "1s")
	p.await(&p.stdout, `hostile  2 clients: the server uses [0-9.]+ % of a core, .* honest players keep [0-9]+ of [0-9]+ frames`)
	p.interrupt()
	if code := p.wait(); code != 1 {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

// TestSoakFleet plays on servers in processes of their own until it is interrupted.
func TestSoakFleet(t *testing.T) {
	p := start(t, "soak", "--fleet", "3", "--players", "4", "--handovers", "4", "--for", "1m")
	p.await(&p.stdout, `4 players joined 3 servers in `)
	p.interrupt()
	if code := p.wait(); code != 1 || strings.Contains(p.stdout.String(), "drained") {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

// TestBots loads a server that reports, over real sockets.
func TestBots(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 200, nil)
	profile := filepath.Join(t.TempDir(), "cpu.prof")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--report", "100ms", "--json", "--shards", "2")
	var report load.Report
	for d := 300 * time.Millisecond; report.Frames.Delivered == 0 && d < time.Minute; d *= 2 { // the machine may stand still for a while
		code, stdout, stderr := uplink(t, "bots", "--to", addr, "--players", "4", "--ramp", "0s", "--for", d.String(), "--json", "--cpuprofile", profile, source.Name)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d: %s", code, stderr)
		}
		must(t, json.Unmarshal([]byte(stdout), &report))
	}
	if p, f := report.Players, report.Frames; p.Connected != 4 || f.Sent == 0 || f.Delivered == 0 || report.Lateness.Count == 0 {
		t.Errorf("%+v", report)
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("no profile: %v", err)
	}
	server.interrupt()
	if code := server.wait(); code != 0 {
		t.Errorf("code %d: %s", code, server.stderr.String())
	}
	var last dsreport.Line
	for d := json.NewDecoder(strings.NewReader(server.stdout.String())); d.More(); {
		must(t, d.Decode(&last))
	}
	if !last.Whole || last.Frames == 0 || last.ToHandler.Count != last.Frames {
		t.Errorf("%+v", last)
	}
}

// TestBotsInterrupted plays until Ctrl-C, to a server that reports as text.
func TestBotsInterrupted(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 50, nil)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--report", "100ms")
	p := start(t, "bots", "--to", addr, "--players", "2", "--ramp", "0s", "--loss", "5%", "--codec", "rle", source.Name)
	server.await(&server.stdout, ` 2 players, [1-9]`)
	p.interrupt()
	// The server may have let the second one in before that one knew.
	if code := p.wait(); code != 0 || !regexp.MustCompile(`^[12] of 2 players at 60 Hz for `).MatchString(p.stdout.String()) || strings.Contains(p.stderr.String(), "\x1b") {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
	server.interrupt()
	server.wait()
	if out := server.stdout.String(); !strings.Contains(out, "\nin all ") || !strings.Contains(out, " frames delivered, ") {
		t.Error(out)
	}
}
