package udp

import (
	"net"

	"golang.org/x/sys/unix"
)

// canShareAddress reports whether several sockets can be bound to one address. The kernel then
// distributes datagrams over them by sender.
const canShareAddress = true

// dontFragment forbids routers to fragment. It also makes the kernel reject datagrams larger than
// the interface permits and ignore its cached path MTU, because the protocol probes the path
// itself. Errors are ignored.
func dontFragment(fd uintptr, six bool) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	if six {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	}
}

// shareAddress permits other sockets of this user to be bound to the same address.
func shareAddress(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

// reportRefused sets whether the kernel reports ICMP errors to the socket, although it is not
// connected. Errors are ignored.
func reportRefused(fd uintptr, on bool) {
	value := 0
	if on {
		value = 1
	}
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, value)
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, value) // fails for IPv4
}

// forceBuffers sets the sizes of the kernel's buffers beyond the system's limits, if the process
// has the privilege.
func forceBuffers(socket *net.UDPConn) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer)
	})
}
