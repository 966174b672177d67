//go:build linux && field

package field

import (
	"fmt"
	"testing"
)

// ordinary is the size of the largest datagram that is not sent in parts, in bytes of IPv4.
const ordinary = 1228

// TestPathSizes plays over paths of each size, with and without ICMP, and over paths that shrink
// and grow in a session.
func TestPathSizes(t *testing.T) {
	for _, c := range []struct {
		addr string
		mtus []int
	}{{routed1v6, []int{1280, 1500, 9000}}, {routed1, []int{576, 1000, 1280, 1500, 9000}}} {
		for _, told := range []bool{true, false} {
			for _, mtu := range c.mtus {
				t.Run(fmt.Sprintf("%s mtu=%d icmp=%v", c.addr, mtu, told), func(t *testing.T) {
					t.Parallel()
					n := newNetwork(t)
					n.setMTU(t, mtu, told)
					g := startGame(t, n, c.addr)
					if mtu < ordinary {
						g.exchange(t, 0) // the size is searched for
					}
					g.exchange(t, 0.95)
					g.steady(t)
					up, down := g.conn.Stats().Transport.MaxDatagram, g.player.Stats().Transport.MaxDatagram
					if mtu < ordinary && (up > mtu-28 || down > mtu-28 || down < 548) {
						t.Errorf("found %d up, %d down", up, down)
					}
				})
			}
			if c.mtus[0] > ordinary {
				continue // IPv6 carries what is usual
			}
			t.Run(fmt.Sprintf("%s shrinks icmp=%v", c.addr, told), func(t *testing.T) {
				t.Parallel()
				n := newNetwork(t)
				n.setMTU(t, 9000, told)
				g := startGame(t, n, c.addr)
				g.exchange(t, 0.95)
				n.setMTU(t, c.mtus[0], told)
				g.exchange(t, 0)
				g.exchange(t, 0.3)
				g.exchange(t, 0.95)
				n.setMTU(t, 9000, told)
				g.exchange(t, 0.95)
				g.steady(t)
			})
		}
	}
}
