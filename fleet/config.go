package fleet

import (
	"log/slog"
	"time"
)

// Config configures a server's membership in a fleet. The zero value of each field means its
// default.
type Config struct {
	// Store is the shared state; it is required.
	Store Store
	// Name identifies the server in the fleet: see [CheckName]. It is required, and unique: if
	// another server has the name, ds.Server.Serve returns [ErrTaken].
	Name string
	// Labels are for the game, such as region or map. [Server.Check] states their limits.
	Labels map[string]string
	// Interval is the time between two calls of Announce, by default 2 s.
	Interval time.Duration
	// Timeout limits each call of the store, by default 2 s. The transport limits it to 5 s.
	Timeout time.Duration
	// Outage is the time for which joins are allowed while the store fails; by default they are
	// refused. During an outage a token is valid once at each server that it names, instead of once
	// in the fleet.
	Outage time.Duration
	// Logger receives a record when the store fails and when it works again; nil disables that.
	Logger *slog.Logger
}

// Stats counts the requests of a server to the [Store].
type Stats struct {
	// Admitted counts joins with a token new to the store, Used joins with a used token, and
	// Refused joins that failed because the store failed. Unchecked counts joins that were allowed
	// while the store failed.
	Admitted, Used, Refused, Unchecked uint64
	// Replaced counts sessions that ended because their client joined another server.
	Replaced uint64
	// Errors counts failed calls of the store.
	Errors uint64
	// Up reports whether the last call of the store succeeded, and Listed whether the directory
	// contains the server according to its last announcement: a backend finds no other servers.
	Up, Listed bool
	// Err is why Up or Listed is false.
	Err error
	// Unrecorded is the number of sessions and used tokens that the store has not recorded yet.
	Unrecorded int
}
