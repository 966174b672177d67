package wire

import "encoding/binary"

// GrantSize is the size of a grant in bytes.
const GrantSize = 1 + 8 + 1

// Code says whether a session was granted, and if not, why.
type Code uint8

// The codes of a grant.
const (
	Granted      Code = iota
	TokenExpired      // the token's time is over
	TokenUsed         // a key exchange before has used the token
	TokenRefused      // the token is altered, or sealed with another key
	TokenServer       // the token is for another server
	TokenStale        // the token is older than the server
	ServerFull        // the listener has as many sessions as it may
	NoSuite           // the listener takes none of the suites offered
	codes
)

// Grant is the payload of a welcome's message. If the code is not [Granted] the rest is zero.
type Grant struct {
	Code  Code
	ID    uint64 // the session's, random
	Suite uint8
}

// AppendGrant appends a grant.
func AppendGrant(b []byte, g Grant) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, uint8(g.Code)), g.ID)
	return append(b, g.Suite)
}

// ParseGrant reads a grant; one of any other length, with a code that this version does not know, or
// granted with the id 0, is [ErrMalformed].
func ParseGrant(b []byte) (Grant, error) {
	if len(b) != GrantSize {
		return Grant{}, ErrMalformed
	}
	g := Grant{Code: Code(b[0]), ID: binary.LittleEndian.Uint64(b[1:]), Suite: b[9]}
	if g.Code >= codes || g.Code == Granted && g.ID == 0 {
		return Grant{}, ErrMalformed
	}
	return g, nil
}
