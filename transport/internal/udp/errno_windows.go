package udp

import "syscall"

// What Winsock reports beside syscall's own names: a datagram cut off, an unreachable host (network
// dropped the connection, on a socket that has none), no buffers.
const (
	wsaEMsgSize  syscall.Errno = 10040
	wsaENetReset syscall.Errno = 10052
	wsaENoBufs   syscall.Errno = 10055
	wsaERefused  syscall.Errno = 10061
)

func transientErrno(e syscall.Errno) bool {
	switch e {
	case syscall.WSAECONNRESET, wsaEMsgSize, wsaENetReset, wsaENoBufs, wsaERefused:
		return true
	default:
		return false
	}
}
