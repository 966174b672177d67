package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// ErrReconnecting says that a frame was not sent since the connection is being
// made again. Go on calling Send: it works again by itself.
var ErrReconnecting = errors.New("client: reconnecting")

// ErrKicked says that the server ended this connection, and not since it shut
// down; the text says why. It is not made again.
var ErrKicked = errors.New("client: kicked by the server")

// ErrLost says that the connection was lost and is not made again: Config.NoReconnect
// says so, its token is used up and there is no Config.Renew, or the player is connected
// once more from elsewhere ([ErrReplaced]). What it wraps says which.
var ErrLost = errors.New("client: connection lost")

// Why Dial fails, why a connection is lost, or what [Conn.Err] says; wrapped, so ask
// with errors.Is. A refused Config.Token is one of the errors of package token.
var (
	// ErrTimeout says that nothing was heard from the server for Config.Timeout.
	ErrTimeout = transport.ErrTimeout
	// ErrServerFull says that the server has as many players as it lets in.
	ErrServerFull = transport.ErrServerFull
	// ErrVersion says that the server speaks another version of the protocol.
	ErrVersion = transport.ErrVersion
	// ErrShutdown says that the server shuts down.
	ErrShutdown = transport.ErrPeerShutdown
	// ErrSessionLost says that the server does not know the connection any more: it was
	// most likely restarted.
	ErrSessionLost = transport.ErrSessionLost
	// ErrReplaced says that the server has a newer connection of this client.
	ErrReplaced = transport.ErrReplaced
)

// ErrBindTimeout says that the server did not answer a request to bind an RPC.
var ErrBindTimeout = errors.New("client: no answer to bind")

// SchemaError says that client and server describe an RPC differently.
type SchemaError struct {
	RPC   string
	Field string // the first field that differs
	Here  string // what the client has there; empty if it has no such field
	There string // what the server has there, as it was sent: any bytes; empty if it has no such field
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("client: bind %s: field \"%s\" differs: here %s, at the server %s",
		e.RPC, shown(e.Field), orNothing(e.Here), orNothing(e.There))
}

func orNothing(s string) string {
	if s == "" {
		return "no such field"
	}
	return "{" + shown(s) + "}"
}

// maxShown is how many bytes of a server's text an error shows at most.
const maxShown = transport.MaxPayload

// shown returns a text of the server's for an error, which may end in a log or on a terminal: what is not printable is
// escaped as in a Go string, and what is longer than maxShown bytes is cut off.
func shown(s string) string {
	tail := ""
	if len(s) > maxShown {
		s, tail = s[:maxShown], "..."
	}
	quoted := strconv.Quote(s)
	if s = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`); tail != "" {
		s += tail
	}
	return s
}

// UnknownRPCError says that the server handles no RPC of that name.
type UnknownRPCError struct {
	RPC   string
	Known []string // what it handles, as it was sent: any bytes
}

func (e *UnknownRPCError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("client: bind %s: the server handles no RPCs", e.RPC)
	}
	return fmt.Sprintf("client: bind %s: the server handles no such RPC, but %s", e.RPC, shown(strings.Join(e.Known, ", ")))
}

// bindError turns a refusal into an error.
func bindError(s *schema.Schema, codec rpcdelta.Codec, a *control.BindAnswer) error {
	switch a.Reason {
	case control.ReasonNone:
		return nil
	case control.ReasonUnknown:
		return &UnknownRPCError{RPC: s.RPC(), Known: a.Known}
	case control.ReasonSchema:
		e := &SchemaError{RPC: s.RPC(), There: a.Theirs}
		e.Field, _, _ = strings.Cut(a.Theirs, " ")
		if fields := s.Fields(); a.Field >= 0 && a.Field < len(fields) {
			e.Here, e.Field = fields[a.Field].String(), fields[a.Field].Name
		}
		return e
	case control.ReasonCodec:
		return fmt.Errorf("client: bind %s: the server has no codec %v, but %s", s.RPC(), codec, shown(strings.Join(a.Known, ", ")))
	case control.ReasonInvalid:
		return fmt.Errorf("client: bind %s: the server does not take its rate of %v Hz or its ring", s.RPC(), s.RateHz())
	case control.ReasonNumber:
		return fmt.Errorf("client: bind %s: its number is taken at the server, or it is bound too often", s.RPC())
	}
	return fmt.Errorf("client: bind %s: refused for an unknown reason %d", s.RPC(), a.Reason)
}
