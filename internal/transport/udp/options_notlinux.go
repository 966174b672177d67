//go:build !linux

package udp

import "net"

const canShareAddress = false

func shareAddress(uintptr) error { return nil }

// reportRefused does nothing: Windows always reports, and the others only to connected sockets.
func reportRefused(uintptr, bool) {}

func forceBuffers(*net.UDPConn) {}
