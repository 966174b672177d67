package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/bots"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/dsreport"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestBots loads a server that reports, over real sockets.
func TestBots(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 200, nil)
	profile := filepath.Join(t.TempDir(), "cpu.prof")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--report", "100ms", "--json", "--shards", "2")
	var report bots.Report
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

func TestBotsErrors(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	other := slice(t, sample.Portal2(), 5, nil)
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name))
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	nobody := silent.LocalAddr().String()
	const help = "hint: uplink bots --help\n"
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"", 2, []string{"uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json\n" + help}},
		{"--players 0 a.csv", 2, []string{"uplink: --players 0: want 1 to 60000\n" + help}},
		{"--rate 0.5 a.csv", 2, []string{"uplink: --rate 0.5: want 1 to 1000 calls a second, or 0 for players who stay idle\n" + help}},
		{"--rate NaN a.csv", 2, []string{"uplink: --rate NaN: want 1 to 1000 calls a second, or 0 for players who stay idle\n" + help}},
		{"--ramp -1s a.csv", 2, []string{"uplink: --ramp -1s: want 0s or more\n" + help}},
		{"--for -1s a.csv", 2, []string{"uplink: --for -1s: want 0s, which is until Ctrl-C, or more\n" + help}},
		{"--rebind-every 1ms a.csv", 2, []string{"uplink: --rebind-every 1ms: want 0s, which is never, or at least 1s\n" + help}},
		{"--key " + source.Name + " a.csv", 1, []string{"uplink: --key ", "hint: want the file that uplink keygen wrote "}},
		{"--wait 0s a.csv", 2, []string{"uplink: --wait 0s: want more than 0s\n" + help}},
		{"--loss 7 a.csv", 2, []string{"invalid argument \"7\" for \"--loss\" flag: want 0 to 1, or a percentage such as 5%\n" + help}},
		{"--burst 0 a.csv", 2, []string{"uplink: --burst 0: want 1 to 1000000 packets\n" + help}},
		{"--codec zip a.csv", 2, []string{"uplink: --codec \"zip\": ", help}},
		{"--redundancy 9 a.csv", 2, []string{"want auto, off or 1 to 7 redundant frames\n" + help}},
		{"--to " + nobody + " --wait 30ms " + source.Name, 1, []string{"no answer within 30ms\nhint: is a server there? uplink ds --listen " + nobody + " --schema FILE "}},
		{"--to 192.0.2.1:7777 " + source.Name, 1, []string{"connect token", "\nhint: give the file .issuer of uplink keygen as --key, "}},
		{"--suite none a.csv", 2, []string{"uplink: --suite none: it protects nothing; for measurements --insecure allows it\n" + help}},
		{"--to " + addr + " " + other.Name, 1, []string{"bind ServerMove: field ", " differs: here ", "at the server "}},
		{t.TempDir() + "/none.csv", 1, []string{"none.csv: no such file or directory\n"}},
		{"--cpuprofile " + t.TempDir() + "/no/cpu " + source.Name, 1, []string{"uplink: --cpuprofile: open "}},
	} {
		code, stdout, stderr := uplink(t, append([]string{"bots"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" {
			t.Errorf("uplink bots %s: code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("uplink bots %s: no %q in\n%s", c.args, want, stderr)
			}
		}
	}
}
