package control

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/transport"
)

// Limits of downstreams.
const (
	// MaxDown is how many downstreams a player has at the same time.
	MaxDown = 16
	// MaxPart is the size of a fragment's part of a message in bytes, but for the last.
	MaxPart = transport.MaxPayload - 1 - fragment.HeaderSize
	// MaxDownMessage is the size of the largest message in bytes.
	MaxDownMessage = fragment.MaxCount * MaxPart
	// MaxInitial is the size of the largest initial state in bytes.
	MaxInitial = 1 << 20
	// MaxPiece is the most bytes of it in a message of the reliable channel: one segment.
	MaxPiece = 1024
	// MaxDownAck is the most bytes of a codec's ack.
	MaxDownAck = 64
	// MaxDownRate is the most messages a second that a downstream offers.
	MaxDownRate = 1000
	// MaxDownName is the size of the longest name in bytes.
	MaxDownName = 64
	// maxDownFields bounds what an offer describes.
	maxDownFields = 64
)

// DownOffer offers a downstream to a client.
type DownOffer struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	// Number is the one in the messages.
	Number uint8
	// Name is the downstream's, Codec what codes it, Fields the description of each field of an object.
	Name   string
	Codec  string
	Fields []string
	// RateHz is how many messages a second come at most, and how many acks; TickHz how many ticks a second of the world
	// has.
	RateHz, TickHz float64
	// Initial is the size of the coded initial state in bytes, 0 if it is empty, and Hash the state's own hash, by which
	// a client tells that it has it.
	Initial int
	Hash    uint64
}

// Append appends the offer with its type.
func (o *DownOffer) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Offer)), o)
}

// Check says which part of an offer no DS can mean.
func (o *DownOffer) Check() error {
	switch {
	case o.Number >= MaxDown:
		return fmt.Errorf("%w: downstream %d, want one below %d", ErrMalformed, o.Number, MaxDown)
	case o.Name == "" || len(o.Name) > MaxDownName:
		return fmt.Errorf("%w: a downstream's name of %d bytes, want 1 to %d", ErrMalformed, len(o.Name), MaxDownName)
	case len(o.Fields) > maxDownFields:
		return fmt.Errorf("%w: %d fields, want at most %d", ErrMalformed, len(o.Fields), maxDownFields)
	case !(o.RateHz > 0 && o.RateHz <= MaxDownRate) || !(o.TickHz > 0 && o.TickHz <= MaxDownRate):
		return fmt.Errorf("%w: a downstream's rates of %v and %v Hz, want up to %d", ErrMalformed, o.RateHz, o.TickHz, MaxDownRate)
	case o.Initial < 0 || o.Initial > MaxInitial:
		return fmt.Errorf("%w: an initial state of %d bytes, want at most %d", ErrMalformed, o.Initial, MaxInitial)
	}
	return nil
}

// ParseOffer reads what follows the type.
func ParseOffer(b []byte) (o DownOffer, err error) {
	if err = msgpack.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return o, o.Check()
}

// Answer is what a client says to an offer.
type Answer uint8

// The answers.
const (
	Refused Answer = iota // it does not take part, or not any more
	Send                  // it wants the initial state
	Ready                 // it has it: messages can come
	answers
)

// AppendReply appends an answer to the offer of that number, with its type.
func AppendReply(dst []byte, number uint8, a Answer) []byte {
	return append(dst, byte(Reply), number, byte(a))
}

// ParseReply reads what follows the type.
func ParseReply(b []byte) (number uint8, a Answer, err error) {
	if len(b) != 2 || b[0] >= MaxDown || b[1] >= byte(answers) {
		return 0, 0, fmt.Errorf("%w: a reply %x", ErrMalformed, b[:min(len(b), 4)])
	}
	return b[0], Answer(b[1]), nil
}

// ParseNumber reads the number of a downstream, and gives what follows it.
func ParseNumber(b []byte) (number uint8, rest []byte, err error) {
	if len(b) == 0 || b[0] >= MaxDown {
		return 0, nil, fmt.Errorf("%w: no number of a downstream", ErrMalformed)
	}
	return b[0], b[1:], nil
}

// DownNumber is that of a whole message or a fragment, type included.
func DownNumber(b []byte) uint8 { return b[0] & (MaxDown - 1) }
