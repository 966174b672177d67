package udp

import "golang.org/x/sys/unix"

// ReportsLocal reports whether [Datagram.Local] is supported.
const ReportsLocal = true

// The control message of IPv4: its type, its size, and the offset of the source of answers.
const (
	infoType4 = unix.IP_PKTINFO
	infoSize4 = unix.SizeofInet4Pktinfo
	infoAt4   = 4
)

// reportLocal makes the kernel report the destinations of received datagrams. Errors are ignored:
// the kernel then selects the source of answers.
func reportLocal(fd uintptr, six bool) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVPKTINFO, 1)
	if six {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
}
