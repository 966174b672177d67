//go:build unix

package udp

import "syscall"

// truncated is the flag of a datagram that did not fit.
const truncated = syscall.MSG_TRUNC

func transientErrno(e syscall.Errno) bool {
	switch e {
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EMSGSIZE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EPROTO:
		return true
	default:
		return false
	}
}
