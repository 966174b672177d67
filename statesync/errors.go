package statesync

import (
	"errors"
	"fmt"
)

// Reasons for which a packet or an ack is refused. All but ErrBudget are normal on a lossy or hostile network; they are
// counted, see [SenderStats] and [ReceiverStats].
var (
	// ErrLate says that the packet was decoded before, or needs what is no longer kept.
	ErrLate = errors.New("statesync: late or repeated")
	// ErrBaselineMissing says that a packet that this one refers to is not held. The next acks ask for a new start.
	ErrBaselineMissing = errors.New("statesync: baseline missing")
	// ErrDesync says that both ends hold different states. The next acks ask for a new start.
	ErrDesync = errors.New("statesync: desync")
	// ErrMalformed says that the packet or ack is not what this package writes.
	ErrMalformed = errors.New("statesync: malformed")
	// ErrAck says that an ack names a packet that was never sent.
	ErrAck = errors.New("statesync: impossible ack")
	// ErrBudget says that the budget has no room for a single update; the error's text says how many bytes it takes.
	ErrBudget = errors.New("statesync: budget too small")
	// ErrTick says that a tick is not after the one before it.
	ErrTick = errors.New("statesync: tick does not advance")
)

// PriorityError says that an object's priority is not a number of 0 or above.
type PriorityError struct {
	Object   uint16
	Priority float64
}

func (e *PriorityError) Error() string {
	return fmt.Sprintf("statesync: object %d: priority %v, want a finite number, 0 or above", e.Object, e.Priority)
}
