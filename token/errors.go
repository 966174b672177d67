package token

import (
	"errors"
	"fmt"
)

// ErrMalformed says that a text or sealed bytes are not what they should be; what
// wraps it says where. The input itself is never part of an error's text.
var ErrMalformed = errors.New("token: malformed")

// ErrNoKey means that a key is required, and none was given.
var ErrNoKey = errors.New("token: no key: make one with uplink keygen, or NewKey")

// ErrNoToken means that a client dials another machine without a connect token.
var ErrNoToken = errors.New("token: no connect token: get one from the game's backend, or make one for tests with uplink token")

// Errors of a server that refuses a token. A client receives them over an authenticated handshake.
var (
	// ErrWrongKey means that a token was issued with another key than the server's, or was altered.
	ErrWrongKey = errors.New("token: the connect token was issued with another key than the server's, or altered")
	// ErrExpired means that [Claims.Expires] has passed.
	ErrExpired = errors.New("token: the connect token has expired, get a new one")
	// ErrUsed means that the token has started a session before.
	ErrUsed = errors.New("token: the connect token has been used, get a new one for each connection")
	// ErrWrongServer means that [Claims.Servers] contains no address of the server.
	ErrWrongServer = errors.New("token: the connect token is for another server address")
	// ErrStale means that the token was issued before the server started, so the server cannot know
	// whether it was used.
	ErrStale = errors.New("token: the connect token is older than the server, get a new one")
)

// malformed makes an error that wraps ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
