//go:build unix

package yardstick

import (
	"os"
	"syscall"
	"time"
)

// ProcessCPU returns the CPU time that this process has used, its own and the system's for it. It may be
// as old as the last tick of the scheduler, a few milliseconds, so measure for seconds. Where the operating
// system does not tell, the error is [errors.ErrUnsupported].
func ProcessCPU() (time.Duration, error) { return usage(syscall.RUSAGE_SELF) }

func usage(who int) (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0, os.NewSyscallError("getrusage", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
