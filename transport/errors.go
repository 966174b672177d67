package transport

import (
	"errors"
	"net"

	"github.com/uplink-rpc/uplink/transport/internal/session"
)

// Why a connection ended, or did not begin. Closed and Dial report them, perhaps wrapped.
var (
	// ErrTimeout means that nothing was heard from the peer for [Config.Timeout].
	ErrTimeout = session.ErrTimeout
	// ErrSessionLost means that the listener no longer knows the connection; it has most likely been
	// restarted. Dial again, with a new token.
	ErrSessionLost = session.ErrSessionLost
	// ErrClosedByPeer means that the other end closed this connection; the text says why.
	ErrClosedByPeer = session.ErrClosedByPeer
	// ErrPeerShutdown means that the other end is going away as a whole. It may come back.
	ErrPeerShutdown = session.ErrPeerShutdown
	// ErrReplaced means that the same client id has begun a new connection.
	ErrReplaced = session.ErrReplaced
	// ErrProtocol means that the peer sent reliable segments that make no message.
	ErrProtocol = session.ErrProtocol
)

// Why Dial failed. A token that the listener refuses is an error of package token: [token.ErrExpired],
// [token.ErrUsed], [token.ErrWrongKey], [token.ErrWrongServer] or [token.ErrStale].
var (
	// ErrServerFull means that the listener has [Config.MaxConns] connections. The token is not used.
	ErrServerFull = session.ErrServerFull
	// ErrServerBusy means that the listener had too many handshakes to do until [Config.Timeout]; the
	// token is not used.
	ErrServerBusy = session.ErrServerBusy
	// ErrVersion means that the ends speak different versions of the protocol.
	ErrVersion = session.ErrVersion
	// ErrNoSuite means that the ends have no suite in common.
	ErrNoSuite = session.ErrNoSuite
)

// Why nothing was sent. After the connection's end the error wraps [net.ErrClosed] and why it ended.
var (
	// ErrTooLarge means that b is longer than [Conn.MaxPayload], or 16 KiB.
	ErrTooLarge = session.ErrTooLarge
	// ErrBacklog means that too many reliable messages wait to be acknowledged: about 290 KB.
	ErrBacklog = session.ErrBacklog
)

// errDialedOnly is what Rebind returns for a listener's connection.
var errDialedOnly = errors.New("transport: only a dialed connection can change its own address")

// closedError is what a connection returns after its end.
type closedError struct{ cause error }

func (e closedError) Error() string {
	if e.cause == nil {
		return "transport: use of closed connection"
	}
	return "transport: use of closed connection: " + e.cause.Error()
}

func (e closedError) Unwrap() []error {
	if e.cause == nil {
		return []error{net.ErrClosed}
	}
	return []error{net.ErrClosed, e.cause}
}
