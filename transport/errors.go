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
	// restarted. Dial again.
	ErrSessionLost = session.ErrSessionLost
	// ErrClosedByPeer means that the other end closed this connection; the text says why.
	ErrClosedByPeer = session.ErrClosedByPeer
	// ErrPeerShutdown means that the other end is going away as a whole. It may come back.
	ErrPeerShutdown = session.ErrPeerShutdown
	// ErrReplaced means that the same address has begun a new connection.
	ErrReplaced = session.ErrReplaced
	// ErrServerFull means that the listener has [Config.MaxConns] connections.
	ErrServerFull = session.ErrServerFull
	// ErrVersion means that the ends speak different versions of the protocol.
	ErrVersion = session.ErrVersion
	// ErrProtocol means that the peer sent reliable segments that make no message.
	ErrProtocol = session.ErrProtocol
)

// Why nothing was sent. After the connection's end the error wraps [net.ErrClosed] and why it ended.
var (
	// ErrTooLarge means that b is longer than [MaxPayload], or [MaxMessage].
	ErrTooLarge = session.ErrTooLarge
	// ErrBacklog means that too many reliable messages wait to be acknowledged: about 290 KB.
	ErrBacklog = session.ErrBacklog
	// ErrEmpty means that a reliable message has no byte.
	ErrEmpty = session.ErrEmpty
)

// ErrInsecure is returned for an address that is not this machine's own.
var ErrInsecure = errors.New("transport: connections are not yet authenticated or encrypted: " +
	"set Config.Insecure to accept that, or use a loopback address such as 127.0.0.1")

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
