//go:build !linux

package udp

import "net"

// shareAddress does nothing: there is one shard.
func shareAddress(uintptr) error { return nil }

// forceBuffers does nothing: the system's limits hold.
func forceBuffers(*net.UDPConn) {}
