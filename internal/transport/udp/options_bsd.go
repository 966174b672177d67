//go:build darwin || freebsd

package udp

import "golang.org/x/sys/unix"

// dontFragment forbids fragmentation. Errors are ignored: old versions do not support it.
func dontFragment(fd uintptr, six bool) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
	if six {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	}
}
