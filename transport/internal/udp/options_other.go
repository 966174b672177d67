//go:build !linux && !darwin && !freebsd && !windows

package udp

// dontFragment does nothing: no datagram is so large that it matters often.
func dontFragment(uintptr, bool) {}
