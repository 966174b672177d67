package session

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Why a session ended, or was not established.
var (
	ErrTimeout        = errors.New("transport: timed out, nothing was received from the peer")
	ErrSessionLost    = errors.New("transport: the listener no longer knows this session, dial again")
	ErrClosedByPeer   = errors.New("transport: closed by the peer")
	ErrPeerShutdown   = errors.New("transport: the peer shut down")
	ErrReplaced       = errors.New("transport: replaced by a new session of the same client")
	ErrUnacknowledged = fmt.Errorf("transport: the peer has not acknowledged a reliable segment that was sent %d times", reliable.MaxTransmissions)
	ErrProtocol       = errors.New("transport: the peer violated the protocol of the reliable channel")

	ErrVersion    = errors.New("transport: the peer speaks another version of the protocol")
	ErrServerFull = errors.New("transport: the server is full")
	ErrServerBusy = errors.New("transport: the server has too many handshakes to do, try again later")
	ErrNoSuite    = errors.New("transport: the server supports none of the suites in Config.Suites")
)

// Why nothing was sent.
var (
	ErrNotOpen  = errors.New("transport: the connection is not open")
	ErrTooLarge = reliable.ErrTooLarge
	ErrBacklog  = reliable.ErrBacklog
	ErrEmpty    = reliable.ErrEmpty
)

// The errors for what the peer sent. The defaults are [token.ErrWrongKey], [ErrVersion] (unknown
// reasons are those of another version) and [ErrClosedByPeer].
var (
	grantErrors = map[wire.Code]error{
		wire.TokenExpired: token.ErrExpired, wire.TokenUsed: token.ErrUsed, wire.TokenServer: token.ErrWrongServer,
		wire.TokenStale: token.ErrStale, wire.ServerFull: ErrServerFull, wire.NoSuite: ErrNoSuite,
	}
	refusalErrors = map[wire.RefuseReason]error{wire.RefuseKey: token.ErrWrongKey}
	closeErrors   = map[wire.CloseCode]error{wire.CloseShutdown: ErrPeerShutdown, wire.CloseReplaced: ErrReplaced}
)
