// Package control holds the messages besides frames that client and DS
// exchange: acks, how jitter buffers stand, the binding of RPCs, bundles of frames, what
// carries the game's own messages, and the types of replication messages. Each starts with a byte
// whose high two bits are set, which no frame does.
package control

import (
	"errors"
	"fmt"
)

// Type is the first byte of a message.
type Type uint8

// Mask marks a message that is not a payload of rpcdelta: both bits of its first byte are set, as in
// the first byte of no payload.
const Mask = 1<<7 | 1<<6

// The types of messages.
const (
	// Frame is any byte that does not have both high bits set: a payload of rpcdelta.
	Frame Type = 0
	// Acks is followed by one ack after the other.
	Acks Type = Mask | iota
	// Bind is followed by a BindRequest.
	Bind
	// Bound is followed by a BindAnswer.
	Bound
	// Message is followed by a message of the game's own; over the reliable channel
	// alone.
	Message
	// Leaving says that the DS is about to shut down; nothing follows.
	Leaving
	// Offer is followed by a replication.Offer. Like the next three types it is for the reliable
	// channel alone.
	Offer
	// Reply is followed by the number of a replication stream and a replication.Answer.
	Reply
	// Piece is followed by the number of a replication stream and a piece of its initial state.
	Piece
	// Stop is followed by the number of a replication stream.
	Stop
	// DownAck is followed by the number of a replication stream and an ack of its codec.
	DownAck
	// Slack is followed by how jitter buffers stand, see [ParseSlack], and by acks.
	Slack
	// DownFragment is followed by a fragment of a message of a replication stream. The low 4 bits are
	// the number of the stream.
	DownFragment Type = Mask | 1<<4
	// Down is followed by a complete message of a replication stream, of that number.
	Down Type = Mask | 3<<4
	// Bundle is followed by frames: see [Frames]. The 15 types above it are bundles
	// too: they say how many frames there are.
	Bundle Type = Mask | bundleFlag
)

// ErrMalformed says that a message is none of this package's.
var ErrMalformed = errors.New("malformed control message")

// Split tells what a message is and gives what follows its type; of a frame, of
// a bundle and of a message of a replication stream all of it.
func Split(b []byte) (Type, []byte, error) {
	if len(b) == 0 {
		return 0, nil, fmt.Errorf("%w: empty", ErrMalformed)
	}
	if b[0]&Mask != Mask {
		return Frame, b, nil
	}
	t := Type(b[0])
	switch family := t &^ bundleMask; family {
	case Bundle, DownFragment, Down:
		return family, b, nil
	default:
	}
	switch t {
	case Acks, Bind, Bound, Message, Leaving, Offer, Reply, Piece, Stop, DownAck, Slack:
		return t, b[1:], nil
	default:
		return 0, nil, fmt.Errorf("%w: type %#x", ErrMalformed, b[0])
	}
}
