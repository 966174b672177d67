//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"net"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func TestSockaddrKeepsAddress(t *testing.T) {
	ips := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 4, 4), func(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)).Unmap() }))
	var s sockaddr // used again, as the kernel's arrays are
	rapid.Check(t, func(t *rapid.T) {
		want := netip.AddrPortFrom(ips.Draw(t, "ip"), rapid.Uint16().Draw(t, "port"))
		four := want.Addr().Is4() && rapid.Bool().Draw(t, "four")
		check.Value(s.set(want, four, new(zones)))(t)
		if got := s.addr(new(zones)); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestZones(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) == 0 {
		t.Skip("no interfaces: ", err)
	}
	var s sockaddr
	for _, zone := range []string{interfaces[0].Name, "65000"} {
		want := netip.AddrPortFrom(netip.MustParseAddr("fe80::1").WithZone(zone), 7)
		var z zones
		for range 2 { // the second time from memory
			check.Value(s.set(want, false, &z))(t)
			if got := s.addr(&z); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}
	if _, err := s.set(netip.MustParseAddrPort("[fe80::1%nowhere]:7"), false, new(zones)); err == nil {
		t.Error("an interface that does not exist is no error")
	}
}

func TestSockaddrOfAnotherFamily(t *testing.T) {
	if a := new(sockaddr).addr(new(zones)); a.IsValid() {
		t.Errorf("got %v", a)
	}
}
