// Package session defines the states of a client's session with a dedicated server, and the reasons
// why a session is refused or ends. The packages client and ds wrap these errors in their own, so
// that errors.Is finds the same reason at both ends. Refused tokens are errors of package token.
package session

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Reasons for the end of a session. The comments state which ends get the error, and whether the
// client reconnects, unless its configuration forbids that.
var (
	// ErrQuit means that the client closed the connection. Both ends.
	ErrQuit = errors.New("the client quit")
	// ErrKicked means that the game kicked the player; the text contains its reason. Both ends. The
	// client does not reconnect.
	ErrKicked = errors.New("kicked by the server")
	// ErrShutdown means that the server shut down, or that it lost its socket. Both ends. The
	// client reconnects.
	ErrShutdown = errors.New("the server shut down")
	// ErrTimeout means that the other end sent nothing, or acknowledged nothing, for too long. Each
	// end detects this independently. The client reconnects.
	ErrTimeout = errors.New("timed out")
	// ErrNoServer means that the network reported, before any answer, that no program receives at
	// the server's address. Such reports are not authenticated. The client tries again when it
	// reconnects.
	ErrNoServer = errors.New("no server at this address")
	// ErrReplaced means that the same client has a newer session. Both ends. The client does not
	// reconnect.
	ErrReplaced = errors.New("replaced by a newer session of the same client")
	// ErrProtocol means that one end violated the protocol; the text describes the violation. Both
	// ends. The client does not reconnect if the server ended the session.
	ErrProtocol = errors.New("protocol violation")
	// ErrLimit means that the client exceeded a limit of the server; the text names the limit and
	// the offending action. Both ends. The client does not reconnect.
	ErrLimit = errors.New("limit exceeded")
	// ErrPanic means that a callback of the game, or code that decodes data from the other end,
	// panicked; the text contains the value of the panic. Only the end that panicked gets it: if it
	// is the server, the client gets [ErrKicked]; if it is the client, the server gets [ErrQuit].
	// The client reconnects.
	ErrPanic = errors.New("a callback of the game or a decoder panicked")
	// ErrHandedOver means that the client continues at another server, to which this one handed it
	// over. Both ends.
	ErrHandedOver = errors.New("handed over to another server")
	// ErrUnknown means that the server does not know the session, most likely because it was
	// restarted. Only the client gets it. The client reconnects.
	ErrUnknown = errors.New("the server does not know the session")
)

// Reasons why a client could not connect. The client tries again if it had a session before.
var (
	// ErrServerFull means that the server has its maximum number of players, which the text
	// contains.
	ErrServerFull = errors.New("the server is full")
	// ErrServerBusy means that the server temporarily refuses new sessions; the text contains the
	// reason if the server sent one.
	ErrServerBusy = errors.New("the server is busy, try again later")
	// ErrVersion means that the ends use different versions of the protocol.
	ErrVersion = errors.New("the server speaks another version of the protocol")
	// ErrNoSuite means that the server permits none of the client's cipher suites; the text names
	// those of both ends.
	ErrNoSuite = errors.New("no cipher suite in common")
)

// ErrDraining means that a server refuses new players because it drains. Both ends. The client's
// token is not used up.
var ErrDraining = fmt.Errorf("%w: it is draining", ErrServerBusy)

// ErrHandover means that a client could not continue at the server to which it was to be handed
// over, and stays. At the client, the text contains the reason.
var ErrHandover = errors.New("not handed over")

// ErrBacklog means that a message was not sent because too many bytes wait for acknowledgement, or
// because too many messages were sent. The error names the limit. The same message can be sent
// later.
var ErrBacklog = errors.New("too much is waiting, try again later")

// ErrUnhandled means that the server handles no requests, or the other end no streams.
var ErrUnhandled = errors.New("the other end does not handle it")

// RequestError means that the server's game refused a request.
type RequestError struct {
	Reason string // the first 256 bytes of the reason, as received: arbitrary bytes
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("the server refused the request: %q", e.Reason)
}

// DefaultStreamRate is the default of the rate limit of streams in one direction of a session, and
// MinStreamRate its minimum, in bytes per second.
const (
	DefaultStreamRate = 256 << 10
	MinStreamRate     = 4 << 10
)

// ErrStreamAborted means that a stream ended before all of it was read: one end aborted it, or the
// game at the reading end returned from its callback.
var ErrStreamAborted = errors.New("the stream was aborted")

// StreamWriter is the sending end of a stream: bytes in order, more than a message can carry, which
// do not delay messages. Errors wrap an error of this package if the session has ended,
// [ErrStreamAborted], [ErrUnhandled], or are the cause of the stream's context. Write and Close are
// for one goroutine at a time.
type StreamWriter interface {
	// Write waits until all of b was passed to the network; up to 64 KiB may be in flight or unread
	// at the other end. Close waits until the other end has read everything up to io.EOF: only then
	// its error is nil.
	io.WriteCloser
	// Abort ends the stream unless everything was sent. The error of the other end contains the
	// first 256 bytes of the reason. It does not wait, and has no effect after Close has returned.
	Abort(reason string)
}

// StreamReader is the receiving end of a stream. Read waits for data. After all of it, the error is
// io.EOF; otherwise it wraps [ErrStreamAborted], or the reason why the session has ended.
type StreamReader interface {
	io.Reader
	// Name returns the name of the stream, which the other end chose: 1 to 128 arbitrary bytes.
	Name() string
}

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
	// It wraps an error of this package or of package token, except for failures of the client's
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
	// Mismatch, if not nil, is a *client.MismatchError that describes a difference between client
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
}
