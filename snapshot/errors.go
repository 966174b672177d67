package snapshot

import (
	"errors"
	"fmt"
)

// Reasons for which a payload or an ack is refused. All are normal on a lossy or hostile network: count them.
var (
	// ErrLate says that the snapshot was decoded before, or was overtaken by so many that what it needs is gone.
	ErrLate = errors.New("snapshot: late or repeated")
	// ErrBaselineMissing says that the baseline or a set before it that prediction reads is not held. The next acks ask
	// the encoder for a reset.
	ErrBaselineMissing = errors.New("snapshot: baseline missing")
	// ErrDesync says that both ends hold another set, or another state, under the baseline's name. The decoder forgets
	// what it holds, and the next acks ask the encoder for a reset.
	ErrDesync = errors.New("snapshot: desync")
	// ErrMalformed says that the payload is not what an encoder of this schema writes. The errors after it wrap it, and
	// say how.
	ErrMalformed = errors.New("snapshot: malformed")
	// ErrTruncated says that the payload ends in its header.
	ErrTruncated = fmt.Errorf("%w: truncated", ErrMalformed)
	// ErrCount says that there would be more objects than there can be.
	ErrCount = fmt.Errorf("%w: impossible count of objects", ErrMalformed)
	// ErrID says that an object's id is out of range, or there already.
	ErrID = fmt.Errorf("%w: impossible id", ErrMalformed)
	// ErrBounds says that a component is outside its field's bounds.
	ErrBounds = fmt.Errorf("%w: component out of bounds", ErrMalformed)
	// ErrLength says that bytes follow the end, or are missing there.
	ErrLength = fmt.Errorf("%w: ends early or late", ErrMalformed)
	// ErrAck says that an ack names a snapshot that was never sent; nothing in it is believed.
	ErrAck = errors.New("snapshot: impossible ack")
	// ErrSent says that the world's newest snapshot was coded before: Begin the next one.
	ErrSent = errors.New("snapshot: sent already")
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
