// Package message defines the messages between client and DS other than frames: acks, reports about
// jitter buffers, requests to bind RPCs, bundles of frames, the game's own messages, handovers, and
// the messages of replication streams. The two high bits of the first byte are set in all messages,
// but not in frames.
package message

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// Mask marks a message that is not a payload of rpcdelta. The two high bits of its first byte are
// set; in a payload at least one of them is clear.
const Mask = 1<<7 | 1<<6

// Type is the type of a message: its first byte, or Frame.
type Type uint8

// The types of messages.
const (
	// Frame is a payload of rpcdelta; its first byte does not have both high bits set.
	Frame Type = 0
	// Handover is followed by a HandoverNotice, or by a [Secret] that releases the player. From a
	// client it is followed by nothing, or by that secret. Reliable channel only.
	Handover Type = Mask | (iota - 1)
	// Acks is followed by acks.
	Acks
	// Bind is followed by a BindRequest.
	Bind
	// Bound is followed by a BindAnswer.
	Bound
	// Message is followed by a message of the game.
	Message
	// Leaving announces that the DS is about to shut down; nothing follows.
	Leaving
	// Offer is followed by a replication.Offer. Like the next three types it uses the reliable
	// channel only.
	Offer
	// Reply is followed by the number of a replication stream and a replication.Answer.
	Reply
	// Piece is followed by the number of a replication stream and a piece of its initial state.
	Piece
	// Stop is followed by the number of a replication stream.
	Stop
	// DownAck is followed by the number of a replication stream and an ack of its messages. Another
	// message may follow: see [CutDownAck].
	DownAck
	// Slack is followed by reports about jitter buffers (see [ParseSlack]) and acks.
	Slack
	// WithAcks is followed by the length of acks (1 byte), the acks, and a message Down or
	// DownFragment. In WithSlack, reports precede the acks, as in Slack.
	WithAcks
	WithSlack
	// GameMessage is followed by the number of a replication stream, a tick as an unsigned varint,
	// and a message of the game that takes effect at this tick of the world. Reliable channel only.
	GameMessage
	// Request is followed by a request of a client or the answer to one (see [ParseRequest]).
	// Reliable channel only.
	Request
	// DownFragment is followed by a fragment of a message of a replication stream, Down by a
	// complete message. The low 4 bits are the stream's number.
	DownFragment Type = Mask | 1<<4
	Down         Type = Mask | 3<<4
	// Bundle is followed by frames: see [Frames]. The 15 types above it are bundles too: the low 4
	// bits are the number of frames less 2.
	Bundle Type = Mask | bundleFlag
)

// ErrMalformed reports an invalid message.
var ErrMalformed = errors.New("malformed control message")

// Split returns the type of a message and the bytes after the type. For a frame, a bundle, Down and
// DownFragment it returns all bytes.
func Split(b []byte) (Type, []byte, error) {
	if len(b) == 0 {
		return 0, nil, fmt.Errorf("%w: empty", ErrMalformed)
	}
	if b[0]&Mask != Mask {
		return Frame, b, nil
	}
	t := Type(b[0])
	switch family := t &^ bundleMask; {
	case family == Bundle || family == DownFragment || family == Down:
		return family, b, nil
	case t <= Request:
		return t, b[1:], nil
	}
	return 0, nil, fmt.Errorf("%w: type %#x", ErrMalformed, b[0])
}

// ParseWithAcks parses a message WithAcks or WithSlack without its type. It returns the acks and
// the message that follows them. In WithSlack, the acks include the reports before them.
func ParseWithAcks(b []byte) (acks, message []byte, err error) {
	if len(b) == 0 || int(b[0]) >= len(b)-1 {
		return nil, nil, fmt.Errorf("%w: acks without a message", ErrMalformed)
	}
	n := 1 + int(b[0])
	acks, message = b[1:n], b[n:]
	if family := Type(message[0]) &^ bundleMask; family != Down && family != DownFragment {
		return nil, nil, fmt.Errorf("%w: acks before type %#x", ErrMalformed, message[0])
	}
	return acks, message, nil
}

// MaxDownAck is the maximum size of a message DownAck without the message that follows it.
const MaxDownAck = 2 + seq.MaxAck

// CutDownAck splits a message DownAck, without its type, into the number and the ack of a
// replication stream, and the message that follows. If none follows or the ack is malformed,
// message is empty.
func CutDownAck(b []byte) (ack, message []byte) {
	if len(b) > 0 {
		if _, rest, ok := seq.ParseAck(b[1:]); ok {
			return b[:len(b)-len(rest)], rest
		}
	}
	return b, nil
}

// SkipDownAcks returns the bytes after the acks of replication streams at the start of a client's
// datagram.
func SkipDownAcks(b []byte) []byte {
	for len(b) > 0 && b[0] == byte(DownAck) {
		_, b = CutDownAck(b[1:])
	}
	return b
}

// MaxMessage is the maximum size of a message of the game, in bytes.
const MaxMessage = 8 << 10

const (
	messageRate     = 64 << 10  // bytes/s of messages that a client may send
	messageBurst    = 128 << 10 // bytes
	messageOverhead = 64        // overhead in bytes that each message counts in addition to its size
	// maxBacklog is the maximum number of bytes in the reliable channel after an interruption.
	maxBacklog = 512 << 10
)

// Printable returns a text of the other end in a form that is safe in logs and terminals.
// Characters that are not printable are escaped as in a Go string, and the text is truncated to
// most bytes.
func Printable(s string, most int) string {
	tail := ""
	if len(s) > most {
		s, tail = s[:most], "..."
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + tail
}

// ClientMessages is the rate limit that a client applies to its messages. DSMessages is the rate
// limit that a DS enforces. It is higher, so that a client within its limit does not exceed it when
// the network delays messages.
var (
	ClientMessages = ratelimit.Rate{PerSecond: messageRate, Burst: messageBurst}
	DSMessages     = ratelimit.Rate{PerSecond: 2 * messageRate, Burst: messageBurst + maxBacklog}
)

// MessageCost returns the cost of a message of that size under these limits.
func MessageCost(size int) float64 { return float64(size + messageOverhead) }

// AppendMessage appends a message of the game with its type.
func AppendMessage(dst, b []byte) []byte { return append(append(dst, byte(Message)), b...) }
