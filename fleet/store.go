package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// Store is the shared state of a fleet. Its methods are safe for concurrent use, and return when
// their context is done. An error other than those named means that the store failed; it is unknown
// then whether the call took effect, and the call may be repeated.
type Store interface {
	// Use marks a token as used by an attempt to connect. It returns nil if that attempt is the
	// only one that has used the token, and [token.ErrUsed] if another one has.
	Use(ctx context.Context, u Use) error
	// Begin records that a client plays on a server, and tells the server of the client's earlier
	// session, if that is another one; see Replaced. It returns [ErrNewer] if a newer session of
	// the client is recorded on another server.
	Begin(ctx context.Context, s Session) error
	// End removes the record of a session if it is the client's newest one.
	End(ctx context.Context, s Session) error
	// Replaced calls f with each session that began elsewhere while the store had one of the same
	// client at a server, until ctx is done: then it returns nil. It may call f more than once with
	// a session, with sessions that have ended, and with those from before Replaced was called.
	Replaced(ctx context.Context, server string, f func(Session)) error
	// Announce adds a server to the directory, or updates it, for [ServerTTL] from the time at
	// which the store receives it. It returns an error that wraps [ErrInvalid] if [Server.Check]
	// does, or if the directory has [MaxServers] others.
	Announce(ctx context.Context, s Server) error
	// Withdraw removes a server from the directory.
	Withdraw(ctx context.Context, name string) error
	// Servers returns the servers of the directory, sorted by name.
	Servers(ctx context.Context) ([]Server, error)
}

// ErrNewer means that a client has a newer session elsewhere.
var ErrNewer = errors.New("fleet: the client has a newer session on another server")

const (
	// ServerTTL is how long a server stays in the directory without another Announce.
	ServerTTL = 10 * time.Second
	// SessionTTL is how long the record of a session stays without another Begin.
	SessionTTL = 2 * time.Hour
	// ClockSkew is the maximum difference between the clocks of servers and backend. A used token
	// is remembered for longer than it is valid by that.
	ClockSkew = 5 * time.Minute
)

// Use is the use of a token.
type Use struct {
	Token   token.ID
	Expires time.Time // of the token
	// Attempt identifies the attempt to connect to one server: a server that repeats the call has
	// the same, another one has not.
	Attempt [32]byte
}

// Session is a client's session on a server.
type Session struct {
	Client uint64 `json:"client"`
	Server string `json:"server"` // name
	// ID is the number of the session on its server.
	ID uint64 `json:"id"`
	// Issued is when the session's token was issued. Of two sessions of a client, that of the newer
	// token is the newer one.
	Issued time.Time `json:"issued"`
}

// NewerThan reports whether a session is newer than another one of the same client. Of sessions
// whose tokens were issued at the same time, the one with the larger ID is newer.
func (s Session) NewerThan(o Session) bool {
	if !s.Issued.Equal(o.Issued) {
		return s.Issued.After(o.Issued)
	}
	return s.ID > o.ID
}

// Same reports whether both are the same session.
func (s Session) Same(o Session) bool {
	return s.Client == o.Client && s.Server == o.Server && s.ID == o.ID
}
