package transport

import (
	"net"

	"github.com/uplink-rpc/uplink/transport/internal/session"
)

// Why a connection ended or was not established. [Handler.Closed] and [Dial] return them, possibly
// wrapped.
var (
	// ErrTimeout means that nothing was received from the peer for [Config.Timeout].
	ErrTimeout = session.ErrTimeout
	// ErrSessionLost means that the listener does not know the connection; most likely it was
	// restarted. Dial again, with a new token.
	ErrSessionLost = session.ErrSessionLost
	// ErrClosedByPeer means that the peer closed this connection; the text contains its reason.
	ErrClosedByPeer = session.ErrClosedByPeer
	// ErrPeerShutdown means that the peer shut down. It may be restarted.
	ErrPeerShutdown = session.ErrPeerShutdown
	// ErrReplaced means that the same client id opened a new connection.
	ErrReplaced = session.ErrReplaced
	// ErrProtocol means that the peer sent reliable segments that form no message.
	ErrProtocol = session.ErrProtocol
)

// Why Dial failed. A token that the listener refuses is an error of package token:
// [token.ErrExpired], [token.ErrUsed], [token.ErrWrongKey], [token.ErrWrongServer] or
// [token.ErrStale].
var (
	// ErrServerFull means that the listener has [Config.MaxConns] connections. The token is unused.
	ErrServerFull = session.ErrServerFull
	// ErrServerBusy means that the listener had too many handshakes each time that Dial tried,
	// until [Config.Timeout] had passed. The token is unused.
	ErrServerBusy = session.ErrServerBusy
	// ErrVersion means that the ends use different versions of the protocol.
	ErrVersion = session.ErrVersion
	// ErrNoSuite means that the ends have no suite in common.
	ErrNoSuite = session.ErrNoSuite
)

// Why nothing was sent. After the end of the connection, the error wraps [net.ErrClosed] and the
// cause.
var (
	// ErrTooLarge means that a payload exceeds [Conn.MaxPayload], or a message 16 KiB.
	ErrTooLarge = session.ErrTooLarge
	// ErrBacklog means that too many reliable messages are unacknowledged: about 290 KB.
	ErrBacklog = session.ErrBacklog
)

// closedError is the error of a Conn's methods after its end.
type closedError struct{ cause error }

func (e closedError) Error() string {
	if e.cause == nil {
		return "transport: use of closed connection"
	}
	return "transport: use of closed connection: " + e.cause.Error()
}

func (e closedError) Is(target error) bool { return target == net.ErrClosed }

func (e closedError) Unwrap() error { return e.cause }
