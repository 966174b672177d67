package transport

import (
	"errors"
	"fmt"
)

// Reasons for the end of a session. The comments state which ends get the error, and whether the
// client reconnects, unless its configuration forbids that. The packages client and ds wrap these
// errors in their own, so that errors.Is finds the same reason at both ends. Refused tokens are
// errors of package token.
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

// ErrStore means that a server of a fleet refuses new players because it cannot reach the fleet's
// state, which knows the used tokens. Both ends. A client repeats its request until its timeout.
var ErrStore = fmt.Errorf("%w: it cannot reach the state of its fleet", ErrServerBusy)

// ErrHandover means that a client could not continue at the server to which it was to be handed
// over, and stays. At the client, the text contains the reason.
var ErrHandover = errors.New("not handed over")

// ErrBacklog means that a message was not sent because too many bytes wait for acknowledgement, or
// because too many messages were sent. The error names the limit. The same message can be sent
// later.
var ErrBacklog = errors.New("too much is waiting, try again later")

// ErrUnhandled means that the server handles no requests, or the other end no streams.
var ErrUnhandled = errors.New("the other end does not handle it")
