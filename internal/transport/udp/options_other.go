//go:build !linux && !darwin && !freebsd && !windows

package udp

// dontFragment does nothing: few datagrams are large enough for it to matter.
func dontFragment(uintptr, bool) {}
