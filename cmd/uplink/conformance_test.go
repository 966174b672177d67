package main

import (
	"os"
	"strings"
	"testing"
)

// TestConformance runs a peer as a process, without a fault and with one.
func TestConformance(t *testing.T) {
	t.Setenv(asCommand, "1") // the peer is this program
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 0, "acks 100 0"},
		{[]string{"--fault", "acks"}, 1, "the peer go does not conform"},
	} {
		args := append([]string{"conformance", "--layers", "acks", "--frames", "100", "--schemas", "1", "--", os.Args[0], peerCommand}, c.args...)
		code, stdout, stderr := uplink(t, args...)
		if text := strings.Join(strings.Fields(stdout+stderr), " "); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%v: code %d, %s", args, code, text)
		}
	}
}
