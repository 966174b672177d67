//go:build unix

package udp

import "syscall"

// refusedErrno is the error of a port without a program.
const refusedErrno = syscall.ECONNREFUSED

func transientErrno(e syscall.Errno) bool {
	switch e {
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EMSGSIZE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EPROTO:
		return true
	default:
		return false
	}
}
