package session

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Reasons why a session ended or was not established.
var (
	ErrQuit           = transport.ErrQuit
	ErrKicked         = transport.ErrKicked
	ErrTimeout        = transport.ErrTimeout
	ErrUnknown        = transport.ErrUnknown
	ErrShutdown       = transport.ErrShutdown
	ErrReplaced       = transport.ErrReplaced
	ErrProtocol       = transport.ErrProtocol
	ErrUnacknowledged = fmt.Errorf("%w: a reliable segment was sent %d times without an acknowledgement", ErrTimeout, reliable.MaxTransmissions)

	ErrNoServer   = transport.ErrNoServer
	ErrVersion    = transport.ErrVersion
	ErrServerFull = transport.ErrServerFull
	ErrServerBusy = transport.ErrServerBusy
	ErrNoSuite    = transport.ErrNoSuite
)

// ErrOvertaken means that another connection attempt received an answer first.
var ErrOvertaken = errors.New("transport: another address answered first")

// Reasons why nothing was sent.
var (
	ErrNotOpen  = errors.New("transport: the connection is not open")
	ErrTooLarge = reliable.ErrTooLarge
	ErrBacklog  = reliable.ErrBacklog
	ErrEmpty    = reliable.ErrEmpty
)

// closeErrors lists the reasons for each code of a close. The first reason of a code is sent as
// that code. A client treats code 0 and unknown codes as [ErrKicked].
var closeErrors = []struct {
	code wire.CloseCode
	err  error
}{
	{wire.CloseNormal, ErrQuit},
	{wire.CloseShutdown, ErrShutdown},
	{wire.CloseReplaced, ErrReplaced},
	{wire.CloseProtocol, ErrProtocol},
	{wire.CloseLimit, transport.ErrLimit},
	{wire.CloseBusy, ErrServerBusy},
}

// closeCode returns the code for a reason.
func closeCode(cause error) wire.CloseCode {
	for _, c := range closeErrors {
		if errors.Is(cause, c.err) {
			return c.code
		}
	}
	return wire.CloseNormal
}

// GrantError returns the error for a refused request. An unknown code results in
// [token.ErrWrongKey].
func GrantError(g wire.Grant, offered uint8) error {
	age := time.Duration(min(g.Detail, math.MaxInt64/uint64(time.Second))) * time.Second
	switch g.Code {
	case wire.TokenExpired:
		return fmt.Errorf("%w: it expired %s ago", token.ErrExpired, span(age))
	case wire.TokenStale:
		return fmt.Errorf("%w: it was issued %s before the server started; the clocks of server and backend may differ", token.ErrStale, span(age))
	case wire.TokenAhead:
		seconds, unix := wire.ParseAhead(g.Detail)
		ahead, clock := time.Duration(seconds)*time.Second, time.Unix(unix, 0).UTC()
		return fmt.Errorf("%w: by %v, when at most %v is permitted: it was issued at %s, when the server's clock showed %s", token.ErrAhead,
			ahead, MaxTokenAhead, clock.Add(ahead).Format(time.RFC3339), clock.Format(time.RFC3339))
	case wire.TokenUsed:
		return token.ErrUsed
	case wire.TokenServer:
		return token.ErrWrongServer
	case wire.ServerFull:
		if g.Detail == 0 {
			return transport.ErrDraining
		}
		return fmt.Errorf("%w: it has its maximum of %d players", ErrServerFull, g.Detail)
	case wire.NoSuite:
		return fmt.Errorf("%w: the server permits %s, the client %s", ErrNoSuite, suites(g.Detail), suites(uint64(offered)))
	default:
		return token.ErrWrongKey
	}
}

// span returns a duration in whole seconds, rounded down.
func span(d time.Duration) string {
	if d == 0 {
		return "less than 1s"
	}
	return d.String()
}

// suites returns the names of a set of suites. Bit i of set is suite i.
func suites(set uint64) string {
	var names []string
	for i := range uint8(64) {
		if s := seal.Suite(i); set>>i&1 == 1 && s.Valid() {
			names = append(names, s.String())
		}
	}
	slices.Sort(names)
	if names == nil {
		return "none that this version knows"
	}
	return strings.Join(names, " or ")
}

// Refusal returns the error for an unauthenticated refusal. An unknown reason counts as another
// version.
func Refusal(r wire.RefuseReason, key token.KeyID) error {
	switch r {
	case wire.RefuseKey:
		return fmt.Errorf("%w: the server has no key %v", token.ErrWrongKey, key)
	case wire.RefuseStore:
		return transport.ErrStore
	case wire.RefuseBusy:
		return fmt.Errorf("%w: there are more handshakes than it permits", ErrServerBusy)
	default:
		return fmt.Errorf("%w: the client speaks version %d", ErrVersion, wire.Version)
	}
}
