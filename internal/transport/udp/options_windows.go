package udp

import "syscall"

// truncated is 0: Windows reports a datagram that does not fit as an error, and drops it.
const truncated = 0

// Errors of Winsock that package syscall does not name: a truncated datagram, an unreachable host
// reported to an unconnected socket, no buffers.
const (
	wsaEMsgSize  syscall.Errno = 10040
	wsaENetReset syscall.Errno = 10052
	wsaENoBufs   syscall.Errno = 10055
	wsaERefused  syscall.Errno = 10061
)

// refusedErrno is the error for a port without a program, reported to an unconnected socket.
const refusedErrno = syscall.WSAECONNRESET

func transientErrno(e syscall.Errno) bool {
	switch e {
	case syscall.WSAECONNRESET, wsaEMsgSize, wsaENetReset, wsaENoBufs, wsaERefused:
		return true
	default:
		return false
	}
}

// dontFragmentOption is IP_DONTFRAGMENT and IPV6_DONTFRAG of Winsock, which package syscall does
// not name.
const dontFragmentOption = 14

// dontFragment forbids fragmentation. Errors are ignored.
func dontFragment(fd uintptr, six bool) {
	_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.IPPROTO_IP, dontFragmentOption, 1)
	if six {
		_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.IPPROTO_IPV6, dontFragmentOption, 1)
	}
}
