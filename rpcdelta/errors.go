package rpcdelta

import (
	"errors"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
)

// Reasons for which a decoder drops a payload. All of them occur on a lossy network or under
// attack: count them.
var (
	// ErrLate reports that a newer payload was processed before.
	ErrLate = errors.New("rpcdelta: late")
	// ErrDuplicate reports that the payload was processed before.
	ErrDuplicate = errors.New("rpcdelta: duplicate")
	// ErrBaselineMissing reports that the baseline of the payload is not in the ring. The next ack
	// requests a reset.
	ErrBaselineMissing = errors.New("rpcdelta: baseline missing")
	// ErrDesync reports that both ends hold different frames under the sequence of the baseline.
	// The next ack requests a reset.
	ErrDesync = errors.New("rpcdelta: desync")
	// ErrMalformed reports a payload that no encoder of this schema writes.
	ErrMalformed = wire.ErrMalformed
)

// ErrTooLarge reports a frame that does not fit into one payload. Nothing was encoded, and the
// stream continues.
var ErrTooLarge = errors.New("rpcdelta: frame too large")
