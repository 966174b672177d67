package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestAckRate expects more acks to take more down and less up, in all forms of the output.
func TestAckRate(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "a.svg")
	c := parse[ackCurve](t, "ackrate", "--ack-hz", "5,10,30", "--svg", svg, "--json", rocketLeague)
	if c.Name != sample.RocketLeagueName || !slices.Equal(c.Hz, []float64{5, 10, 30}) || len(c.Up) != 3 {
		t.Fatalf("%+v", c)
	}
	for i := range c.Up {
		if c.Up[i]+c.Down[i] != c.Sum[i] || i > 0 && (c.Up[i] >= c.Up[i-1] || c.Down[i] <= c.Down[i-1]) {
			t.Errorf("%+v", c)
		}
	}
	if len(c.Batched) != len(c.Hz) || c.Batched[0] <= c.Sum[0] || c.Batched[2] != c.Batched[0] {
		t.Errorf("full frames in the same datagrams: %v", c.Batched)
	}
	_, stdout, _ := uplink(t, "ackrate", "--ack-hz", "5,10,30", rocketLeague)
	sums := fmt.Sprintf("%.2f  %.2f  %.2f", c.Sum[0], c.Sum[1], c.Sum[2])
	const link = "; codec adaptive; encrypted with gcm, 16 bytes per datagram; up and acks in wire bits, "
	for _, want := range []string{link, "batched: full frames in the same datagrams", "kbit/s ", "  30 Hz\n", sums} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(picture), ">rocketleague_solo_30hz</text>") {
		t.Errorf("%v: %s", err, picture)
	}
}
