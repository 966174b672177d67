package client

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// The causes of a failed [Dial] and of the end of a connection are errors of package transport, and
// of package token if Config.Token was refused.
var (
	// ErrReconnecting means that a frame was not sent because the client is reconnecting. Send
	// works again by itself afterwards.
	ErrReconnecting = errors.New("client: reconnecting")
	// ErrLost means that the connection was lost and the client does not reconnect, because of
	// Config.NoReconnect, because its token is used up and Config.Renew is nil, or because the
	// player connected from elsewhere (transport.ErrReplaced). It wraps the cause.
	ErrLost = errors.New("client: connection lost")
	// ErrBindTimeout means that the server did not answer a request to bind an RPC in time.
	ErrBindTimeout = errors.New("client: no answer to bind")
	// ErrUnknownRPC means that the server handles no RPC of that name. The text lists those that it
	// handles.
	ErrUnknownRPC = errors.New("client: no such RPC")
)

// FieldError means that an RPC, or the objects of a world, cannot be converted between client and
// server: a field has another kind or number of values, or a smaller range at its receiver, or the
// two ends have no field name in common.
type FieldError struct {
	Field string
	Here  string // the client's description of the field; empty if it has no such field
	There string // the server's, as received: arbitrary bytes; empty if it has no such field

	of string // the binding or the world
	// nearest is the name of the field of the server that was probably meant, if no field of both
	// ends has the same name; as received.
	nearest string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("client: %s: field \"%s\" cannot be converted: here %s, at the server %s%s",
		e.of, shown(e.Field), orNothing(e.Here), orNothing(e.There), message.AsNearest(e.nearest))
}

func orNothing(field string) string {
	if field == "" {
		return "no such field"
	}
	return "{" + shown(field) + "}"
}

// shown returns a text from the server for an error.
func shown(s string) string { return message.Printable(s, transport.MaxPayload) }

// opError is the error of an operation. Its text contains the name of the package once.
type opError struct {
	op    string
	cause error
}

func (e *opError) Error() string {
	return "client: " + e.op + ": " + strings.TrimPrefix(e.cause.Error(), "client: ")
}

func (e *opError) Unwrap() error { return e.cause }

// attemptsError is the error of several failed attempts to reach a server, with their causes. Its
// text is one line with each cause once.
type attemptsError struct{ causes []error }

// attemptsFailed returns the error of attempts that failed for these causes.
func attemptsFailed(causes []error) error {
	if len(causes) == 1 {
		return causes[0]
	}
	return &attemptsError{causes}
}

func (e *attemptsError) Error() string {
	var texts []string
	times := map[string]int{}
	for _, cause := range e.causes {
		text := strings.TrimPrefix(cause.Error(), "client: ")
		if times[text]++; times[text] == 1 {
			texts = append(texts, text)
		}
	}
	for i, text := range texts {
		if n := times[text]; n > 1 {
			texts[i] = fmt.Sprintf("%s (%d times)", text, n)
		}
	}
	return "client: no server was reached: " + strings.Join(texts, "; ")
}

func (e *attemptsError) Unwrap() []error { return e.causes }

// unknownRPC is [ErrUnknownRPC] for an RPC, with the names that the server handles, as received.
type unknownRPC struct {
	rpc   string
	known []string
}

func (e *unknownRPC) Error() string {
	if len(e.known) == 0 {
		return fmt.Sprintf("client: bind %s: the server handles no RPCs", e.rpc)
	}
	return fmt.Sprintf("client: bind %s: the server has no such RPC%s; it has %s", e.rpc, message.Nearest(e.rpc, e.known), shown(strings.Join(e.known, ", ")))
}

func (e *unknownRPC) Unwrap() error { return ErrUnknownRPC }

// bindError returns the error of a refused binding, or nil if the RPC is bound.
func bindError(s *schema.Schema, codec rpcdelta.Codec, a *message.BindAnswer) error {
	switch a.Reason {
	case message.ReasonNone, message.ReasonDescribe:
		return nil
	case message.ReasonUnknown:
		return &unknownRPC{s.RPC(), a.Known}
	case message.ReasonSchema:
		e := &FieldError{of: "bind " + s.RPC(), There: a.Theirs}
		e.Field, _, _ = strings.Cut(a.Theirs, " ")
		if fields := s.Fields(); a.Field >= 0 && a.Field < len(fields) {
			e.Here, e.Field = fields[a.Field].String(), fields[a.Field].Name
		}
		if a.Theirs == "" {
			e.nearest = message.NearestName(e.Field, a.Answering)
		}
		return e
	case message.ReasonCodec:
		return fmt.Errorf("client: bind %s: the server has no codec %v, but %s", s.RPC(), codec, shown(strings.Join(a.Known, ", ")))
	case message.ReasonInvalid:
		return fmt.Errorf("client: bind %s: a value is out of the range that the server permits: %s", s.RPC(), shown(cmp.Or(a.Theirs, "ring, batch, velocity factors or fields")))
	case message.ReasonRate:
		return fmt.Errorf("client: bind %s: %v calls a second, the server permits up to %v (ds.Config.Limits.MaxRate)", s.RPC(), s.RateHz(), a.LimitHz)
	case message.ReasonFixedRate:
		return fmt.Errorf("client: bind %s: %v calls a second, but the server takes %v, since it has a ds.JitterBuffer (ds.Config.TickHz) or a ds.TimeCheck (its RateHz) for it: "+
			"set BindConfig.RateHz to %[3]v", s.RPC(), s.RateHz(), a.LimitHz)
	case message.ReasonReliable:
		return fmt.Errorf("client: bind %s: the server has a jitter buffer for it, which takes no reliable calls: leave out BindConfig.Reliable, or ds.JitterBuffer of Handle", s.RPC())
	case message.ReasonNumber:
		return fmt.Errorf("client: bind %s: the server refuses the number: %s", s.RPC(), shown(cmp.Or(a.Theirs, "it is in use, or the RPC is bound already")))
	}
	return fmt.Errorf("client: bind %s: refused for an unknown reason %d", s.RPC(), a.Reason)
}

var errClosed = fmt.Errorf("client: %w", net.ErrClosed)
