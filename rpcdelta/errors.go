package rpcdelta

import (
	"errors"
	"fmt"
)

// Reasons for which a decoder drops a payload. All are normal on a lossy or
// hostile network: count them.
var (
	// ErrLate says that a newer payload was processed before this one came.
	ErrLate = errors.New("rpcdelta: late")
	// ErrDuplicate says that this very payload was processed before.
	ErrDuplicate = errors.New("rpcdelta: duplicate")
	// ErrBaselineMissing says that the payload's baseline is not in the ring. The
	// next ack asks the encoder for a reset.
	ErrBaselineMissing = errors.New("rpcdelta: baseline missing")
	// ErrDesync says that both ends hold different frames under the baseline's
	// sequence. The next ack asks the encoder for a reset.
	ErrDesync = errors.New("rpcdelta: desync")
	// ErrMalformed says that the payload is not what an encoder of this schema
	// writes.
	ErrMalformed = errors.New("rpcdelta: malformed")
)

// ErrTooLarge says that a frame does not fit into one payload. Nothing was
// sent, and the stream goes on.
var ErrTooLarge = errors.New("rpcdelta: frame too large")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}
