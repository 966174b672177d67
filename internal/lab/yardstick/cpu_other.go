//go:build !unix

package yardstick

import (
	"errors"
	"time"
)

// ProcessCPU returns the CPU time that this process has used, its own and the system's for it. It may be
// as old as the last tick of the scheduler, a few milliseconds, so measure for seconds. Where the operating
// system does not tell, the error is [errors.ErrUnsupported].
func ProcessCPU() (time.Duration, error) { return 0, errors.ErrUnsupported }
