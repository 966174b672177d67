package main

import (
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/trace/sample"
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
