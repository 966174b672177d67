// Package control holds the messages besides frames that client and DS
// exchange: acks, the binding of RPCs, bundles of frames, and what carries the game's
// own messages. Each starts with a
// byte whose high two bits are set, which no frame does.
package control

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Type is the first byte of a message.
type Type uint8

// The types of messages.
const (
	// Frame is any byte that does not have both high bits set: a payload of rpcdelta.
	Frame Type = 0
	// Acks is followed by one ack after the other.
	Acks Type = rpcdelta.ControlMask | iota
	// Bind is followed by a BindRequest.
	Bind
	// Bound is followed by a BindAnswer.
	Bound
	// Message is followed by a message of the game's own; over the reliable channel
	// alone.
	Message
	// Leaving says that the DS is about to shut down; nothing follows.
	Leaving
	// Bundle is followed by frames: see [Frames]. The 15 types above it are bundles
	// too: they say how many frames there are.
	Bundle Type = rpcdelta.ControlMask | bundleFlag
)

// ErrMalformed says that a message is none of this package's.
var ErrMalformed = errors.New("malformed control message")

// Split tells what a message is and gives what follows its type; of a frame and
// of a bundle all of it.
func Split(b []byte) (Type, []byte, error) {
	if len(b) == 0 {
		return 0, nil, fmt.Errorf("%w: empty", ErrMalformed)
	}
	if b[0]&rpcdelta.ControlMask != rpcdelta.ControlMask {
		return Frame, b, nil
	}
	t := Type(b[0])
	if t&^bundleMask == Bundle {
		return Bundle, b, nil
	}
	switch t {
	case Acks, Bind, Bound, Message, Leaving:
		return t, b[1:], nil
	default:
		return 0, nil, fmt.Errorf("%w: type %#x", ErrMalformed, b[0])
	}
}
