//go:build !linux

package udp

import "net"

const canShareAddress = false

func shareAddress(uintptr) error { return nil }

// reportRefused does nothing: Windows always reports, other systems only for connected sockets.
func reportRefused(uintptr, bool) {}

func forceBuffers(*net.UDPConn) {}
