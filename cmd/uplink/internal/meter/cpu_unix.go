//go:build unix

package meter

import (
	"syscall"
	"time"
)

// CPU is the CPU time that this process has used, in user and in system mode; 0 where the system does not tell.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
