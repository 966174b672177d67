package token

import (
	"errors"
	"fmt"
)

// ErrMalformed says that a text or sealed bytes are not what they should be; what
// wraps it says where. The input itself is never part of an error's text.
var ErrMalformed = errors.New("token: malformed")

// ErrForeign says that sealed bytes do not open: they were sealed with another key,
// or for another server's public key, or changed on the way. Which it was cannot
// be told.
var ErrForeign = errors.New("token: foreign or altered: not sealed for this key, or changed since")

// ErrNoKey says that a zero key was used.
var ErrNoKey = errors.New("token: no key: make one with uplink keygen, or NewKey")

// malformed makes an error that wraps ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
