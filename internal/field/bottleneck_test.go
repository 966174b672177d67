//go:build linux && field

package field

import "testing"

// TestBottleneck plays through a router that carries 3 Mbit/s in each direction, with a queue of a
// second: what needs less than that arrives.
func TestBottleneck(t *testing.T) {
	setMTU(t, 9000, true)
	for _, name := range []string{"r0", "r1"} {
		run(t, "tc", "-n", "router", "qdisc", "add", "dev", name, "root", "tbf", "rate", "3mbit", "burst", "16kb", "latency", "1s")
		t.Cleanup(func() { run(t, "tc", "-n", "router", "qdisc", "del", "dev", name, "root") })
	}
	g := startGame(t, routed)
	g.exchange(t, 0.9)
	g.exchange(t, 0.9)
	g.steady(t)
}
