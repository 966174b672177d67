package transport

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAddressesAgainstModel compares them with one map, on addresses that differ in little: in the
// port, in one bit, in the family, in the zone.
func TestAddressesAgainstModel(t *testing.T) {
	var all []netip.AddrPort
	for _, ip := range []string{"0.0.0.0", "127.0.0.1", "127.0.0.2", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "fe80::1%a", "fe80::1%b"} {
		for _, port := range []uint16{0, 1, 0xffff} {
			all = append(all, netip.AddrPortFrom(netip.MustParseAddr(ip), port))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m, model := newAddresses(), map[netip.AddrPort]*Conn{}
		conns := []*Conn{{id: 1}, {id: 2}}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			a, c := rapid.SampledFrom(all).Draw(t, "address"), rapid.SampledFrom(conns).Draw(t, "conn")
			if rapid.Bool().Draw(t, "remove") {
				if m.remove(a, c); model[a] == c {
					delete(model, a)
				}
			} else {
				m.set(a, c)
				model[a] = c
			}
			for _, a := range all {
				if m.get(a) != model[a] {
					t.Fatalf("%v is at %v", a, fmt.Sprint(slices.Collect(maps.Keys(model))))
				}
			}
			if m.len() != len(model) {
				t.Fatalf("%d addresses, want %d", m.len(), len(model))
			}
		}
	})
}
