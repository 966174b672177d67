package client

import (
	"net/netip"
)

// scope classifies an address by the hosts that can reach it.
type scope uint8

const (
	global      scope = iota
	unreachable       // no server has such an address
	loopback
	linkLocal
	private // networks of homes, companies and providers
)

var (
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // behind a provider's NAT
	siteLocal   = netip.MustParsePrefix("fec0::/10")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	reserved    = netip.MustParsePrefix("240.0.0.0/4") // includes the broadcast address
)

func scopeOf(a netip.Addr) scope {
	switch a = a.Unmap(); {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || thisNetwork.Contains(a) || reserved.Contains(a):
		return unreachable
	case a.IsLoopback():
		return loopback
	case a.IsLinkLocalUnicast():
		return linkLocal
	case a.IsPrivate() || sharedSpace.Contains(a) || siteLocal.Contains(a):
		return private
	}
	return global
}

// follows reports whether the client accepts a handover from the server at address own to the
// server at address to.
func (cfg *Config) follows(own, to netip.Addr) bool {
	s := scopeOf(to)
	return s == global || s != unreachable && (cfg.Transport.LocalHandovers || s == scopeOf(own))
}
