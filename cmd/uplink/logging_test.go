package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestLogJSON checks that a server logs as JSON, including the events of connections.
func TestLogJSON(t *testing.T) {
	source := slice(t, sample.Portal2(), 10, nil)
	server := start(t, "ds", "--listen", "127.0.0.1:0", "--schema", trace.SchemaPath(source.Name), "--log-format", "json", "--log-level", "debug")
	addr := server.await(&server.stderr, `"msg":"listening","addr":"(\S+?)"`)[1]
	if code, _, stderr := uplink(t, "replay", "--to", addr, "--log-format", "json", "--log-level", "debug", source.Name); code != 0 || !strings.Contains(stderr, `"msg":"connected","remote":"`+addr) {
		t.Errorf("code %d: %s", code, stderr)
	}
	server.await(&server.stderr, `"msg":"player disconnected"`)
	server.interrupt()
	server.wait()
	seen := map[string]bool{}
	for line := range strings.Lines(server.stderr.String()) {
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Time == "" || record.Level == "" {
			t.Errorf("%v in %s", err, line)
		}
		seen[record.Msg] = true
	}
	for _, msg := range []string{"rpc registered", "listening", "connection opened", "player connected", "rpc bound", "player disconnected"} {
		if !seen[msg] {
			t.Errorf("%q is not in the log:\n%s", msg, server.stderr.String())
		}
	}
}

// TestDebug checks the pages that --debug serves, and that none are served without it.
func TestDebug(t *testing.T) {
	schema := trace.SchemaPath(slice(t, sample.Portal2(), 1, nil).Name)
	server, _ := startDS(t, "--schema", schema, "--metrics", "127.0.0.1:0", "--debug")
	url := server.await(&server.stderr, `msg=metrics url=(\S+)\n`)[1]
	demo := start(t, "demo", "--rtt", "0s", "--loss", "0", "--clients", "1", "--debug")
	demoURL := demo.await(&demo.stdout, `Metrics: (\S+)\n`)[1]
	for _, c := range [][3]string{
		{url, "debug/vars", `"RPC":"ServerMove"`},
		{url, "debug/pprof/goroutine?debug=1", "ds.(*Server)"},
		{demoURL, "debug/vars", `"RPC":"PortalMove"`},
	} {
		page := strings.Replace(c[0], "metrics", c[1], 1)
		text := get(t, page)
		for range 100 { // a listening server may serve a moment later
			if strings.Contains(text, c[2]) {
				break
			}
			time.Sleep(10 * time.Millisecond)
			text = get(t, page)
		}
		if !strings.Contains(text, c[2]) {
			t.Errorf("%s: no %q in\n%s", c[1], c[2], text)
		}
	}
	quiet, _ := startDS(t, "--schema", schema, "--metrics", "127.0.0.1:0")
	url = quiet.await(&quiet.stderr, `msg=metrics url=(\S+)\n`)[1]
	if code := status(t, strings.Replace(url, "metrics", "debug/vars", 1)); code != 404 {
		t.Errorf("code %d without --debug", code)
	}
}
