//go:build !linux

package udp

import "net"

const canShareAddress = false

func shareAddress(uintptr) error { return nil }

func forceBuffers(*net.UDPConn) {}
