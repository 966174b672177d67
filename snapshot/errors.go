package snapshot

import (
	"errors"
	"fmt"
)

// Reasons for which a payload or an ack is refused. All are normal on a lossy or hostile network: count them.
var (
	// ErrLate says that the snapshot was decoded before, or is older than what the ring holds.
	ErrLate = errors.New("snapshot: late or repeated")
	// ErrBaselineMissing says that the baseline or a set before it that prediction reads is not held.
	ErrBaselineMissing = errors.New("snapshot: baseline missing")
	// ErrMalformed says that the payload is not what an encoder of this schema writes.
	ErrMalformed = errors.New("snapshot: malformed")
	// ErrAck says that an ack names a snapshot that was never sent.
	ErrAck = errors.New("snapshot: impossible ack")
	// ErrTooLarge says that a snapshot does not fit the limit; nothing was sent.
	ErrTooLarge = errors.New("snapshot: too large")
)

// RangeError says that an object's component is outside its field's bounds. Nothing was sent.
type RangeError struct {
	Object uint16
	Field  string
	Value  int32
	Lo, Hi int32
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("snapshot: object %d: field %q: component %d, want %d to %d", e.Object, e.Field, e.Value, e.Lo, e.Hi)
}
