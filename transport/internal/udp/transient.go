package udp

import (
	"errors"
	"syscall"
)

// transient reports whether a read failed for something that happened to an earlier datagram, or for
// want of memory, so that the next read may succeed.
func transient(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && transientErrno(errno)
}
