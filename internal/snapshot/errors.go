package snapshot

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

// Reasons for which a payload or an ack of a downlink codec is dropped. Package statesync returns
// them too. All of them occur on a lossy network or under attack: count them.
var (
	// ErrLate reports that the payload was decoded before, or arrived after so many newer ones that
	// its references were discarded.
	ErrLate = errors.New("snapshot: late or duplicate")
	// ErrBaselineMissing reports that the decoder does not have the baseline, or another snapshot
	// that the payload refers to. The next acks request a reset.
	ErrBaselineMissing = errors.New("snapshot: baseline missing")
	// ErrDesync reports that the ends hold different objects or models under the sequence number of
	// the baseline. The next acks request a reset.
	ErrDesync = errors.New("snapshot: desync")
	// ErrMalformed reports a payload or an ack that no encoder of this schema writes.
	ErrMalformed = malformed.Err
	// ErrAck reports an ack of a payload that was never sent. The ack has no effect.
	ErrAck = errors.New("snapshot: invalid ack")
)

// ErrTooLarge reports that a snapshot exceeds the limit. No payload was returned.
var ErrTooLarge = errors.New("snapshot: too large")
