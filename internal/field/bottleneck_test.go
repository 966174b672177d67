//go:build linux && field

package field

import "testing"

// TestBottleneck plays through a router that carries 3 Mbit/s in each direction, with a queue of a
// second: what needs less than that arrives.
func TestBottleneck(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.setRate(t, 3000, 1000)
	g := startGame(t, n, routed1)
	g.exchange(t, 0.9)
	g.exchange(t, 0.9)
	g.steady(t)
}
