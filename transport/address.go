package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// resolve returns the address that addr names.
func resolve(ctx context.Context, addr string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("transport: bad address %q: %w", addr, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("transport: bad port in %q: %w", addr, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("transport: cannot resolve %q: %w", addr, err)
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(port)), nil
}

// localFor returns the address to dial a remote one from: of its family, and loopback if it is.
func localFor(remote netip.AddrPort) string {
	ip := netip.IPv6Unspecified()
	switch a := remote.Addr(); {
	case a.Is4() && a.IsLoopback():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case a.Is4():
		ip = netip.IPv4Unspecified()
	case a.IsLoopback():
		ip = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(ip, 0).String()
}
