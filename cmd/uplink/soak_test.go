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
	if code := p.wait(); code != 1 || strings.Contains(p.stdout.String(), "nothing broke") {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

// TestSoakHostile has hostile clients attack a server in a process of its own, until it is interrupted.
func TestSoakHostile(t *testing.T) {
	p := start(t, "soak", "--hostile", "2", "--kinds", "refused-binds,resets", "--players", "1", "--for", "1s")
	p.await(&p.stdout, `hostile  2 clients: the server uses [0-9.]+ % of a core, .* honest players keep [0-9]+ of [0-9]+ frames`)
	p.interrupt()
	if code := p.wait(); code != 1 {
		t.Errorf("code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

func TestSoakErrors(t *testing.T) {
	one, other := slice(t, sample.RocketLeague(), 5, nil), slice(t, sample.Portal2(), 5, nil)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--players 0", 2, "uplink: --players 0: want 1 to 2000\n"},
		{"--hostile 0", 2, "uplink: --hostile 0: want 1 to 200\n"},
		{"--hostile 2 --kinds x", 2, "uplink: --kinds x: want some of refused-binds,"},
		{"--hostile 2 --players 300", 2, "uplink: --players 300: want 1 to 200 with --hostile\n"},
		{"--phase 1s", 2, "uplink: --phase 1s: want at least 3s\n"},
		{"--for 1m --phase 10s", 2, "uplink: --for 1m0s: want at least 2m0s, which is two rounds of 6 phases\n"},
		{one.Name + " " + other.Name, 1, "another schema than that of"},
	} {
		code, stdout, stderr := uplink(t, append([]string{"soak"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("uplink soak %s: code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}
