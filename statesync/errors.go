package statesync

import (
	"errors"
	"fmt"
)

// Errors of [Sender.Append]. Nothing was sent, and priorities continue to accumulate. Packets and
// acks are dropped for the reasons of package snapshot: [snapshot.ErrLate],
// [snapshot.ErrBaselineMissing], [snapshot.ErrDesync], [snapshot.ErrMalformed], [snapshot.ErrAck].
var (
	// ErrBudget reports that not even one update fits into the budget. The text has the size that
	// it needs.
	ErrBudget = errors.New("statesync: budget too small")
	// ErrTick reports a tick that is not after the previous one.
	ErrTick = errors.New("statesync: tick does not advance")
)

// PriorityError reports a priority that is negative, infinite or not a number.
type PriorityError struct {
	Object   uint16
	Priority float64
}

func (e *PriorityError) Error() string {
	return fmt.Sprintf("statesync: object %d: priority %v, want a finite number, 0 or above", e.Object, e.Priority)
}
