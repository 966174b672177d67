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
	// ErrUnacknowledged means that a segment of the reliable channel was sent 20 times, and the peer has not
	// acknowledged it although it was heard.
	ErrUnacknowledged = session.ErrUnacknowledged
)

// Why Dial failed. What the listener says of a token is authenticated: nobody else can say it.
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
	// ErrTokenExpired means that the token's time is over.
	ErrTokenExpired = session.ErrTokenExpired
	// ErrTokenUsed means that the token has begun another connection.
	ErrTokenUsed = session.ErrTokenUsed
	// ErrTokenRefused means that the token is altered, or was issued with another key than the listener has.
	ErrTokenRefused = session.ErrTokenRefused
	// ErrTokenServer means that the token names none of the listener's addresses, which are its Config.Addrs.
	ErrTokenServer = session.ErrTokenServer
	// ErrTokenStale means that the token was issued before the listener started, which cannot know
	// whether it was used.
	ErrTokenStale = session.ErrTokenStale
)

// Why nothing was sent. After the connection's end the error wraps [net.ErrClosed] and why it ended.
var (
	// ErrTooLarge means that b is longer than [Conn.MaxPayload], or [MaxMessage].
	ErrTooLarge = session.ErrTooLarge
	// ErrBacklog means that too many reliable messages wait to be acknowledged: about 290 KB.
	ErrBacklog = session.ErrBacklog
	// ErrEmpty means that a reliable message has no byte.
	ErrEmpty = session.ErrEmpty
)

var (
	// ErrNoKey is returned for listening, without a key of one's own, on an address that is not this
	// machine's alone.
	ErrNoKey = errors.New("transport: a listener that others can reach needs a key of its own: " +
		"make one with uplink keygen and set Config.Key, or listen on a loopback address such as 127.0.0.1")
	// ErrNoToken is returned for dialing such an address without a token.
	ErrNoToken = errors.New("transport: a connection to another machine needs a connect token: " +
		"get one from the game's backend and set Config.Token (uplink token makes one for tests), or dial a loopback address such as 127.0.0.1")
	// ErrDialedOnly is what Rebind returns for a listener's connection.
	ErrDialedOnly = errors.New("transport: only a dialed connection can change its own address")
)

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
