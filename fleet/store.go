package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// Store is the shared state of a fleet. Its methods are safe for concurrent use, and return when
// their context is done. Any error that is not named here means that the store failed. It is then
// unknown whether the call took effect, and the call may be repeated.
type Store interface {
	// Use marks a token as used by an attempt to connect. It returns nil if no other attempt has
	// used the token, otherwise [token.ErrUsed].
	Use(ctx context.Context, u Use) error
	// Begin records that a client plays on a server. If the client has an earlier session on
	// another server, that server is notified; see Replaced. Begin returns [ErrNewer] if a newer
	// session of the client is recorded on another server.
	Begin(ctx context.Context, s Session) error
	// End removes the record of a session if it is the client's newest one.
	End(ctx context.Context, s Session) error
	// Replaced calls f, until ctx is done, with each session that replaces one on the given server:
	// a session of the same client that began on another server. Then it returns nil. It may call f
	// more than once with a session, with sessions that have ended, and with sessions from before
	// the call of Replaced.
	Replaced(ctx context.Context, server string, f func(Session)) error
	// Announce adds a server to the directory, or updates it, for [ServerTTL] from the time at
	// which the store receives it. It returns an error that wraps [ErrInvalid] if [Server.Check]
	// or [Server.CheckOwner] does, or if the directory has [MaxServers] others.
	Announce(ctx context.Context, s Server) error
	// Withdraw removes a server from the directory.
	Withdraw(ctx context.Context, name string) error
	// Servers returns the servers of the directory, sorted by name.
	Servers(ctx context.Context) ([]Server, error)
}

// ErrNewer means that a client has a newer session elsewhere.
var ErrNewer = errors.New("fleet: the client has a newer session on another server")

const (
	// ServerTTL is the time for which a server stays in the directory without another Announce.
	ServerTTL = 10 * time.Second
	// SessionTTL is the time for which the record of a session stays without another Begin.
	SessionTTL = 2 * time.Hour
	// ClockSkew is the maximum difference between the clocks of servers and backend. A used token
	// is remembered for this time after its expiry.
	ClockSkew = 5 * time.Minute
)

// Use is the use of a token.
type Use struct {
	Token   token.ID
	Expires time.Time // expiry of the token
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
	// Issued is when the session's token was issued. A session with a newer token replaces one with
	// an older token.
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
