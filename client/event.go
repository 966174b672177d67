package client

import (
	"fmt"
	"time"
)

// State is the state of a client's connection.
type State uint8

// The states of a connection. A client's Dial returns it Connected.
const (
	// Connected means that there is a session, and that the server answers.
	Connected State = iota + 1
	// Interrupted means that there is a session, but that the server has not answered for about
	// three seconds. The client continues to send. It is Connected again as soon as it receives a
	// datagram of the server.
	Interrupted
	// Reconnecting means that the session has ended and that the client tries to open another one.
	Reconnecting
	// Disconnected means that the connection has ended for good.
	Disconnected
)

// String returns the name of the state in lower case.
func (s State) String() string {
	names := [...]string{Connected: "connected", Interrupted: "interrupted", Reconnecting: "reconnecting", Disconnected: "disconnected"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return names[s]
}

// Event is a change of the state of a client's connection, another attempt to reconnect, or a
// change of the rate of a world's ticks.
type Event struct {
	State State
	// Err is the reason why the session ended or the last attempt to connect failed, while the
	// client is Reconnecting or Disconnected, or the reason why a handover failed; otherwise nil.
	// It wraps an error of package transport or token, except for failures of the client's
	// own network or of its source of tokens.
	Err error
	// Attempt is the number of the next attempt to connect while Reconnecting, from 1. If the
	// client is Connected, it is the number of attempts that this took: 0 after Dial, and in the
	// same session.
	Attempt int
	// New reports whether the client is Connected in a new session, for which the server has a new
	// player. Otherwise the interrupted session continues, and no reliable message is lost.
	New bool
	// Handover is the step of a handover to another server that the event reports, or 0.
	Handover Handover
	// Mismatch, if not nil, is a [*MismatchError] that describes a difference between client
	// and server with which the session continues. Each difference is reported once. The state is
	// that of the previous event.
	Mismatch error
	// TickRate is not 0 if the rate of World's ticks at the server has left the range 1 ± 0.05 or
	// returned to it. It is the measured rate, relative to the nominal one.
	TickRate float64
	// Partial reports whether the client shows World although objects of the player's view have not
	// arrived yet. After a reconnection or a handover it shows the former view until the new one is
	// complete, for 3 to 20 s, depending on the rate of the snapshots.
	Partial bool
	World   string
}

// Handover is a step of a handover of a client from one server to another. In all of them the
// client is Connected or Interrupted.
type Handover uint8

// The steps. HandoverStarted is followed by one of the others, unless the connection ends.
const (
	// HandoverStarted means that the client connects to another server while its session continues.
	HandoverStarted Handover = iota + 1
	// HandoverCompleted means that the client has switched to the other server: New is true.
	HandoverCompleted
	// HandoverFailed means that the client stays. Err is the reason.
	HandoverFailed
)

// String returns the name of the step in lower case.
func (h Handover) String() string {
	names := [...]string{HandoverStarted: "started", HandoverCompleted: "completed", HandoverFailed: "failed"}
	if h == 0 || int(h) >= len(names) {
		return fmt.Sprintf("handover %d", uint8(h))
	}
	return names[h]
}

// Quality describes a client's path to the server.
type Quality struct {
	RTT  time.Duration // smoothed round-trip time
	Loss float64       // share of the server's datagrams that did not arrive, over about the last ten seconds
	// PathSize is the size in bytes of the largest datagram that the path is known to carry to the
	// server, without the headers of UDP and IP; 0 while that is not known. Paths below 1,200 are
	// unusual: larger datagrams are sent in parts there. See transport.Stats.MaxDatagram.
	PathSize int
	// Rate is the rate in bits/s that congestion permits the client to send, 0 while there is none,
	// and Queue the delay in the queue of the path to the server. See transport.Stats.
	Rate  float64
	Queue time.Duration
}
