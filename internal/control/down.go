package control

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/transport"
)

// Limits of replication streams.
const (
	MaxDown        = 16                                             // streams of a player at the same time
	MaxPart        = transport.MaxPayload - 1 - fragment.HeaderSize // bytes of a message in a fragment
	MaxDownMessage = fragment.MaxCount * MaxPart                    // bytes of a message
	MaxInitial     = 1 << 20                                        // bytes of an initial state
	MaxPiece       = 1024                                           // bytes of a piece: one segment of the reliable channel
	MaxDownAck     = 64                                             // bytes of an ack
	MaxDownRate    = 1000                                           // messages per second, and ticks per second
	MaxDownName    = 64                                             // bytes of a name
	maxDownFields  = 64
)

// DownOffer offers a replication stream to a client.
type DownOffer struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	Number  uint8 // of the stream in its messages
	Name    string
	Codec   string
	Fields  []string // description of each field of an object
	RateHz  float64  // maximum number of messages per second, and of acks
	TickHz  float64  // ticks per second of the world
	Initial int      // size of the encoded initial state in bytes; 0 if it is empty
	Hash    uint64   // of the initial state, to find out whether the client has it
}

// Append appends the offer with its type.
func (o *DownOffer) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Offer)), o)
}

// Check returns an error if a value is out of range.
func (o *DownOffer) Check() error {
	switch {
	case o.Number >= MaxDown:
		return fmt.Errorf("%w: replication stream %d, want one below %d", ErrMalformed, o.Number, MaxDown)
	case o.Name == "" || len(o.Name) > MaxDownName:
		return fmt.Errorf("%w: a name of %d bytes, want 1 to %d", ErrMalformed, len(o.Name), MaxDownName)
	case len(o.Fields) > maxDownFields:
		return fmt.Errorf("%w: %d fields, want at most %d", ErrMalformed, len(o.Fields), maxDownFields)
	case !(o.RateHz > 0 && o.RateHz <= MaxDownRate) || !(o.TickHz > 0 && o.TickHz <= MaxDownRate):
		return fmt.Errorf("%w: rates of %v and %v Hz, want up to %d", ErrMalformed, o.RateHz, o.TickHz, MaxDownRate)
	case o.Initial < 0 || o.Initial > MaxInitial:
		return fmt.Errorf("%w: an initial state of %d bytes, want at most %d", ErrMalformed, o.Initial, MaxInitial)
	}
	return nil
}

// ParseOffer parses and checks an offer without its type.
func ParseOffer(b []byte) (o DownOffer, err error) {
	if err = msgpack.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return o, o.Check()
}

// Answer is the client's answer to an offer.
type Answer uint8

// Answers to an offer.
const (
	Refused Answer = iota // the client does not subscribe, or has unsubscribed
	Send                  // the client requests the initial state
	Ready                 // the client has the initial state; messages can follow
	answers
)

// AppendReply appends an answer to the offer of that number, with its type.
func AppendReply(dst []byte, number uint8, a Answer) []byte {
	return append(dst, byte(Reply), number, byte(a))
}

// ParseReply parses a reply without its type.
func ParseReply(b []byte) (number uint8, a Answer, err error) {
	if len(b) != 2 || b[0] >= MaxDown || b[1] >= byte(answers) {
		return 0, 0, fmt.Errorf("%w: reply %x", ErrMalformed, b[:min(len(b), 4)])
	}
	return b[0], Answer(b[1]), nil
}

// ParseNumber parses the number of a replication stream. It returns the bytes after it.
func ParseNumber(b []byte) (number uint8, rest []byte, err error) {
	if len(b) == 0 || b[0] >= MaxDown {
		return 0, nil, fmt.Errorf("%w: no number of a replication stream", ErrMalformed)
	}
	return b[0], b[1:], nil
}

// DownNumber returns the stream's number in a Down or DownFragment message.
func DownNumber(b []byte) uint8 { return b[0] & (MaxDown - 1) }
