package endpoint

import (
	"net"

	"github.com/uplink-rpc/uplink/internal/transport/session"
)

// ErrTooLarge means that a payload exceeds [Conn.MaxPayload], or a message 16 KiB. All other errors
// about sessions are those of package transport, which a listener and its clients share, and of
// package token for refused tokens.
var ErrTooLarge = session.ErrTooLarge

// closedError is the error of a Conn's methods after its end.
type closedError struct{ cause error }

func (e closedError) Error() string {
	return "use of closed connection: " + e.cause.Error()
}

func (e closedError) Is(target error) bool { return target == net.ErrClosed }

func (e closedError) Unwrap() error { return e.cause }
