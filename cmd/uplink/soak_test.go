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

func TestSoakErrors(t *testing.T) {
	one, other := slice(t, sample.RocketLeague(), 5, nil), slice(t, sample.Portal2(), 5, nil)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--players 0", 2, "uplink: --players 0: want 1 to 2000\n"},
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
