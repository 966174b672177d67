package replication

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/transport"
)

// Limits of replication streams. Sizes are in bytes.
const (
	// MaxReplicas is the maximum number of streams of a player at the same time.
	MaxReplicas = 16
	// MaxFragment is the size of the parts into which a message is split. The last one may be
	// smaller.
	MaxFragment = transport.MaxPayload - 1 - fragment.HeaderSize
	// MaxMessage is the maximum size of a message.
	MaxMessage = fragment.MaxCount * MaxFragment
	// MaxInitial is the maximum size of an encoded initial state.
	MaxInitial = 1 << 20
	// MaxRate is the maximum number of messages, and of ticks, per second.
	MaxRate = 1000
	// MaxName is the maximum size of the name of a world.
	MaxName = 64

	// MaxProcessed is the maximum number of RPCs in a [Processed].
	MaxProcessed = 16

	// MaxTypes is the maximum number of object types in addition to the world's own.
	MaxTypes = 15

	maxFields = 64 // maximum number of fields in an offer
	// maxPiece is the maximum size of a piece of the initial state: one segment of the reliable
	// channel.
	maxPiece = 1024
)

// The names of the codecs in offers.
const (
	SnapshotCodec = "snapshot"
	StateCodec    = "state"
)

// Offer is the server's announcement that a client may subscribe to a world.
type Offer struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	// Number is the stream's number in messages, below MaxReplicas.
	Number uint8
	// Name is the name of the world.
	Name string
	// Codec is SnapshotCodec or StateCodec.
	Codec string
	// Fields describes each field of an object.
	Fields []string
	// RateHz is the maximum number of messages per second, and the maximum number of acks per
	// second.
	RateHz float64
	// TickHz is the number of ticks per second of the world.
	TickHz float64
	// Initial is the size of the encoded initial state in bytes, 0 if the state is empty.
	Initial int
	// Hash is the hash of the initial state: see [Hash].
	Hash uint64
	// Areas is true if a client receives only the objects of some areas, coded by groups.
	Areas bool
	// Types are further object types. They require Areas.
	Types []OfferedType
	// Processed is true if each message begins with a [Processed].
	Processed bool
	// PerTick contains the factor of each velocity of an object, for StateCodec: see
	// [schema.Schema.PerTick].
	PerTick []int64
}

// OfferedType is a further type of objects of a world.
type OfferedType struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	// Name is the name of the type.
	Name string
	// Fields describes each field.
	Fields []string
}

// Append appends the message of the offer, including its message type, and returns the extended
// slice.
func (o *Offer) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(message.Offer)), o)
}

// check returns an error that wraps message.ErrMalformed if the offer is invalid.
func (o *Offer) check() error {
	switch {
	case o.Number >= MaxReplicas:
		return fmt.Errorf("%w: stream %d, want less than %d", message.ErrMalformed, o.Number, MaxReplicas)
	case o.Name == "" || len(o.Name) > MaxName:
		return fmt.Errorf("%w: a world's name of %d bytes, want 1 to %d", message.ErrMalformed, len(o.Name), MaxName)
	case len(o.PerTick) > len(o.Fields):
		return fmt.Errorf("%w: %d velocities of %d fields", message.ErrMalformed, len(o.PerTick), len(o.Fields))
	case len(o.Fields) > maxFields:
		return fmt.Errorf("%w: %d fields, want at most %d", message.ErrMalformed, len(o.Fields), maxFields)
	case !(o.RateHz > 0 && o.RateHz <= MaxRate) || !(o.TickHz > 0 && o.TickHz <= MaxRate):
		return fmt.Errorf("%w: rates of %v and %v Hz, want up to %d", message.ErrMalformed, o.RateHz, o.TickHz, MaxRate)
	case o.Initial < 0 || o.Initial > MaxInitial:
		return fmt.Errorf("%w: an initial state of %d bytes, want at most %d", message.ErrMalformed, o.Initial, MaxInitial)
	}
	return o.checkTypes()
}

func (o *Offer) checkTypes() error {
	if len(o.Types) > MaxTypes {
		return fmt.Errorf("%w: %d types of objects, want at most %d", message.ErrMalformed, len(o.Types), MaxTypes)
	}
	for i, t := range o.Types {
		switch {
		case t.Name == "" || len(t.Name) > MaxName || len(t.Fields) > maxFields:
			return fmt.Errorf("%w: a type of objects without a name of 1 to %d bytes, or with more than %d fields", message.ErrMalformed, MaxName, maxFields)
		case slices.ContainsFunc(o.Types[:i], func(other OfferedType) bool { return other.Name == t.Name }):
			return fmt.Errorf("%w: there is a type %s already", message.ErrMalformed, t.Name)
		}
	}
	return nil
}

// ParseOffer parses the message of an offer without its message type.
func ParseOffer(b []byte) (o Offer, err error) {
	if err = msgpack.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("%w: %w", message.ErrMalformed, err)
	}
	return o, o.check()
}

// Answer is a client's answer to an offer.
type Answer uint8

// The answers.
const (
	Refused Answer = iota // the client does not subscribe, or unsubscribes
	Request               // the client requests the initial state
	Ready                 // the client has the initial state and expects messages
	answers
)

// AppendReply appends a reply to the offer with that number, including the message type, and
// returns the extended slice.
func AppendReply(dst []byte, number uint8, a Answer) []byte {
	return append(dst, byte(message.Reply), number, byte(a))
}

// NoOffer is the number in a reply about a world that the server has not offered within
// [OfferWait].
const NoOffer = 255

// OfferWait is the time after which a client reports that the server has not offered a world to
// which the client has subscribed. The client continues to wait.
const OfferWait = 2 * time.Second

// AppendExplained appends a reply with an explanation: why the client refuses the offer, or how the
// ends differ.
func AppendExplained(dst []byte, number uint8, a Answer, why *message.BindAnswer) ([]byte, error) {
	why.RPC = number
	b, err := why.Fit(nil, maxPiece)
	if err != nil {
		return dst, err
	}
	return append(AppendReply(dst, number, a), b[1:]...), nil // without the type of an answer
}

// parseReply parses a reply without its message type. why is nil if the reply contains no
// explanation.
func parseReply(b []byte) (number uint8, a Answer, why *message.BindAnswer, err error) {
	if len(b) < 2 || b[0] >= MaxReplicas && b[0] != NoOffer || b[1] >= byte(answers) {
		return 0, 0, nil, fmt.Errorf("%w: a reply %x", message.ErrMalformed, b[:min(len(b), 4)])
	}
	if number, a = b[0], Answer(b[1]); len(b) > 2 {
		var explained message.BindAnswer
		if explained, err = message.ParseBindAnswer(b[2:]); err != nil {
			return 0, 0, nil, err
		}
		why = &explained
	}
	if number == NoOffer && (a != Refused || why == nil || why.Reason != message.ReasonUnknown || len(why.Theirs) > MaxName) {
		return 0, 0, nil, fmt.Errorf("%w: a reply to no offer", message.ErrMalformed)
	}
	return number, a, why, nil
}

// RefusedError is the reason why a client refuses an offer.
type RefusedError struct {
	Reason message.Reason
	Err    error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// explain returns the explanation for a reply to an offer, or nil if there is nothing to explain.
func explain(d message.Differences, err error) *message.BindAnswer {
	if err == nil && !d.Any() {
		return nil
	}
	a := new(message.BindAnswer)
	if err == nil {
		a.Report(d)
		return a
	}
	a.Reason = message.ReasonInvalid
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		a.Reason = refused.Reason
	}
	a.Theirs = err.Error()
	return a
}

// parseNumber parses the number of a stream and returns the rest of b.
func parseNumber(b []byte) (number uint8, rest []byte, err error) {
	if len(b) == 0 || b[0] >= MaxReplicas {
		return 0, nil, fmt.Errorf("%w: no number of a stream", message.ErrMalformed)
	}
	return b[0], b[1:], nil
}

// Number returns the number of the stream of a message or fragment, which begins with its type.
func Number(b []byte) uint8 { return b[0] & (MaxReplicas - 1) }

// CheckTick returns an error if tick is above MaxTick, or is more than 73 years after tick 0 at the
// tick rate of the offer.
func (o *Offer) CheckTick(tick uint64) error {
	if ValidTick(tick, o.TickHz) {
		return nil
	}
	return fmt.Errorf("replication: world %s: tick %d with %v ticks a second is more than 73 years after tick 0: count ticks, not milliseconds, or set WorldConfig.TickHz", o.Name, tick, o.TickHz)
}
