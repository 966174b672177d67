//go:build linux && field

package field

import (
	"fmt"
	"testing"
)

const (
	routed, routedV6 = "10.88.1.1:7101", "[fd88:1::1]:7102"
	ordinary         = 1228 // bytes of IP
)

// setMTU makes the router carry so many bytes of IP, in both directions. With told, it reports
// larger packets by ICMP; otherwise they vanish.
func setMTU(t *testing.T, mtu int, told bool) {
	t.Helper()
	device, route := mtu, 9000
	if told {
		device, route = 9000, mtu
	}
	for i, name := range []string{"r0", "r1"} {
		// An interface with less than 1,280 bytes loses its IPv6.
		run(t, "ip", "-n", "router", "link", "set", name, "mtu", fmt.Sprint(device))
		run(t, "ip", "-n", "router", "route", "replace", fmt.Sprintf("10.88.%d.0/24", i), "dev", name, "mtu", "lock", fmt.Sprint(route))
		if mtu >= 1280 {
			run(t, "ip", "-n", "router", "addr", "replace", fmt.Sprintf("fd88:%d::ff/64", i), "dev", name, "nodad")
			run(t, "ip", "-n", "router", "-6", "route", "replace", fmt.Sprintf("fd88:%d::/64", i), "dev", name, "mtu", "lock", fmt.Sprint(route))
		}
	}
}

// TestPathSizes plays over paths of each size, with and without ICMP, and over paths that shrink
// and grow in a session.
func TestPathSizes(t *testing.T) {
	for _, c := range []struct {
		addr string
		mtus []int
	}{{routedV6, []int{1280, 1500, 9000}}, {routed, []int{576, 1000, 1280, 1500, 9000}}} {
		for _, told := range []bool{true, false} {
			for _, mtu := range c.mtus {
				t.Run(fmt.Sprintf("%s mtu=%d icmp=%v", c.addr, mtu, told), func(t *testing.T) {
					setMTU(t, mtu, told)
					g := startGame(t, c.addr)
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
				setMTU(t, 9000, told)
				g := startGame(t, c.addr)
				g.exchange(t, 0.95)
				setMTU(t, c.mtus[0], told)
				g.exchange(t, 0)
				g.exchange(t, 0.3)
				g.exchange(t, 0.95)
				setMTU(t, 9000, told)
				g.exchange(t, 0.95)
				g.steady(t)
			})
		}
	}
}
