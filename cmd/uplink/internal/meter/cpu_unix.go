//go:build unix

package meter

import (
	"syscall"
	"time"
)

// CPU returns the CPU time of this process in user and system mode, or 0 if unknown.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
