package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	_, stdout, _ := uplink(t, "version")
	if !strings.HasPrefix(stdout, "uplink ") || !strings.Contains(stdout, "commit ") || !strings.Contains(stdout, runtime.Version()) {
		t.Errorf("%q", stdout)
	}
}

// TestMan writes a page for each command that is not hidden.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	uplink(t, "man", dir)
	for _, c := range newRoot(&profiler{}).Commands() {
		text, err := os.ReadFile(filepath.Join(dir, "uplink-"+c.Name()+".1"))
		if (err == nil) == c.Hidden {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if err == nil && !strings.Contains(string(text), ".SH NAME\nuplink-"+c.Name()) {
			t.Errorf("%s: %.200s", c.Name(), text)
		}
	}
}

// TestFleetUsage: wrong flags of servers and backends of a fleet, with hints.
func TestFleetUsage(t *testing.T) {
	checkFailures(t, "ds --schema x.json", []failure{
		{"--fleet-name a", 2, "--fleet-name...need --fleet"},
		{"--fleet 127.0.0.1:80 --fleet-name a", 2, "--fleet: want a URL"},
		{"--fleet ftp://a:b@127.0.0.1/ --fleet-name a", 2, "--fleet \"ftp://a:xxxxx@127.0.0.1/\": want a URL"},
		{"--fleet http://127.0.0.1/ --fleet-name a.b", 2, "--fleet-name: the name \"a.b\": want"},
		{"--fleet http://127.0.0.1/ --fleet-name a --fleet-outage -1s", 2, "--fleet-outage -1s"},
		{"--label a-b=c", 2, "--label a-b: want a name"},
		{"--drain-to 127.0.0.1", 2, "--drain-to \"127.0.0.1\": want an IP address and port"},
		{"--drain-timeout 0s", 2, "--drain-timeout 0s: want more than 0s"},
	})
	checkFailures(t, "backend", []failure{
		{"--listen 0.0.0.0:0", 2, "--listen 0.0.0.0:0...set --game-secret and --fleet-secret"},
		{"--for 48h", 2, "--for 48h0m0s: want 1s to 24h0m0s"},
		{"--game-secret /dev/null", 1, "--game-secret /dev/null: want 16 characters"},
		{"--key /none", 1, "/none"},
		{"more", 2, "backend"},
	})
	checkFailures(t, "man", []failure{{"", 2, "man: want one directory"}, {"/none", 1, "/none"}})
}
