//go:build !linux && !darwin && !freebsd

package udp

import "net/netip"

// ReportsLocal reports whether [Datagram.Local] is supported.
const ReportsLocal = false

func reportLocal(uintptr, bool) {}

func localOf([]byte) netip.Addr { return netip.Addr{} }

func appendLocal(b []byte, _ netip.Addr) []byte { return b }
