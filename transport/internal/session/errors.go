package session

import (
	"errors"

	"github.com/uplink-rpc/uplink/transport/internal/reliable"
)

// Why a session ended.
var (
	ErrTimeout      = errors.New("transport: timed out, nothing was heard from the peer")
	ErrSessionLost  = errors.New("transport: the listener no longer knows this session, dial again")
	ErrClosedByPeer = errors.New("transport: closed by the peer")
	ErrPeerShutdown = errors.New("transport: the peer shut down")
	ErrReplaced     = errors.New("transport: replaced by a new session from the same address")
	ErrServerFull   = errors.New("transport: the server is full")
	ErrVersion      = errors.New("transport: the peer speaks another version of the protocol")
	ErrProtocol     = errors.New("transport: the peer broke the rules of the reliable channel")
)

// Why nothing was sent.
var (
	ErrNotOpen  = errors.New("transport: the connection is not open")
	ErrTooLarge = reliable.ErrTooLarge
	ErrBacklog  = reliable.ErrBacklog
	ErrEmpty    = reliable.ErrEmpty
)
