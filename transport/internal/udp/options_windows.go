package udp

import "syscall"

// Winsock's IP_DONTFRAGMENT and IPV6_DONTFRAG, which syscall does not name.
const dontFragmentOption = 14

// dontFragment forbids to fragment. Best effort.
func dontFragment(fd uintptr, six bool) {
	_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.IPPROTO_IP, dontFragmentOption, 1)
	if six {
		_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.IPPROTO_IPV6, dontFragmentOption, 1)
	}
}
