package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
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
		var text string
		uplinktest.Await(t, fmt.Sprintf("%s: %q", c[1], c[2]), func() bool { // a listening server may serve a moment later
			text = get(t, page)
			return strings.Contains(text, c[2])
		}, func() any { return text })
	}
	quiet, _ := startDS(t, "--schema", schema, "--metrics", "127.0.0.1:0")
	url = quiet.await(&quiet.stderr, `msg=metrics url=(\S+)\n`)[1]
	if code := status(t, strings.Replace(url, "metrics", "debug/vars", 1)); code != 404 {
		t.Errorf("code %d without --debug", code)
	}
}

// TestKeyLog plays a demo with a key log, twice, and once without.
func TestKeyLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.txt")
	play := func() string {
		t.Helper()
		code, _, stderr := uplink(t, "demo", "--rtt", "0s", "--loss", "0", "--clients", "2", "--for", "1ms")
		if code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		return stderr
	}
	t.Setenv(keyLogVariable, "")
	if stderr := play(); stderr != "" {
		t.Errorf("warned of nothing: %s", stderr)
	}
	t.Setenv(keyLogVariable, path)
	for n := 2; n <= 4; n += 2 {
		stderr := play()
		if strings.Count(stderr, "WARNING") != 2 || !strings.Contains(stderr, path) {
			t.Errorf("warned %q", stderr)
		}
		f, err := os.Open(path)
		must(t, err)
		sessions, err := keylog.Parse(f)
		must(t, f.Close())
		if err != nil || len(sessions) != n {
			t.Errorf("%d sessions (%v), want %d", len(sessions), err, n)
		}
		info, err := os.Stat(path)
		must(t, err)
		if runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	}
}

// TestKeyLogRefused checks key logs that other users could read or that are not regular files.
func TestKeyLogRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its files have no such modes")
	}
	dir := t.TempDir()
	public := filepath.Join(dir, "public.txt")
	must(t, os.WriteFile(public, nil, 0o600))
	must(t, os.Chmod(public, 0o640))
	link, target := filepath.Join(dir, "link.txt"), filepath.Join(dir, "target.txt")
	must(t, os.WriteFile(target, nil, 0o600))
	must(t, os.Symlink(target, link))
	for _, args := range [][]string{{"demo"}, {"ds", "--schema", strings.TrimSuffix(portal2, ".csv.gz") + ".schema.json"}, {"bots", portal2}, {"replay", portal2}} {
		for path, want := range map[string]string{
			public:                            "uplink: UPLINK_KEYLOG: " + public + ": its mode is -rw-r-----: others than its owner may read or write it\nhint: chmod 600 " + public + ", or name a file that does not exist yet\n",
			os.DevNull:                        "it is not a regular file\nhint: name a file that does not exist yet\n",
			link:                              "it is a symbolic link, and links are not followed\nhint: name a file that does not exist yet\n",
			filepath.Join(dir, "no", "where"): "no such file or directory",
		} {
			t.Setenv(keyLogVariable, path)
			code, _, stderr := uplink(t, args...)
			if code != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%s with %s: code %d: %s", args[0], path, code, stderr)
			}
		}
	}
	for _, path := range []string{public, target} {
		if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
