package token

import (
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrMalformed means that a text or encrypted bytes are invalid; the error that wraps it describes
// where. Errors never contain the input itself.
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

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

const (
	// version is the first byte of the sealed part, and authenticated with it.
	version = 1

	nonceLen  = chacha20poly1305.NonceSizeX
	sealedMin = 1 + nonceLen + chacha20poly1305.Overhead
	minSealed = sealedMin + minClaims

	// MaxSealed is the maximum size of the sealed part of a token in bytes.
	MaxSealed = sealedMin + maxClaims
)

// ID identifies a token. It is not secret.
type ID [16]byte

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// seal encrypts valid claims with the nonce: version, nonce, ciphertext, tag.
func seal(k IssuerKey, c *Claims, nonce *[nonceLen]byte) []byte {
	plain := c.append(make([]byte, 0, maxClaims))
	b := make([]byte, 0, sealedMin+len(plain))
	b = append(append(b, version), nonce[:]...)
	s := k.secrets()
	return newAEAD(&s.token).Seal(b, nonce[:], plain, associated(&s.public))
}

// Open decrypts the sealed part of a token, as received from a client. It does not modify its
// input. It returns the claims, which are within all limits of Claims, and the token's ID. The
// error is ErrWrongKey or wraps ErrMalformed; for the zero key it is ErrNoKey. The caller has to
// check the time and the server address.
func (k Key) Open(sealed []byte) (Claims, ID, error) {
	switch {
	case k.IsZero():
		return Claims{}, ID{}, ErrNoKey
	case len(sealed) < minSealed || len(sealed) > MaxSealed:
		return Claims{}, ID{}, malformed("sealed: %d bytes, want %d to %d", len(sealed), minSealed, MaxSealed)
	case sealed[0] != version:
		return Claims{}, ID{}, malformed("sealed: version %d, want %d: was it issued by another version of uplink?", sealed[0], version)
	}
	nonce := sealed[1 : 1+nonceLen]
	s := k.secrets()
	plain, err := newAEAD(&s.token).Open(nil, nonce, sealed[1+nonceLen:], associated(&s.public))
	if err != nil {
		return Claims{}, ID{}, ErrWrongKey
	}
	c, err := parseClaims(plain)
	if err != nil {
		return Claims{}, ID{}, err
	}
	return c, ID(nonce[:len(ID{})]), nil
}

func associated(public *[32]byte) []byte {
	return slices.Concat([]byte("uplink token"), []byte{version}, public[:])
}

func newAEAD(key *[32]byte) cipher.AEAD {
	x, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		panic("token: " + err.Error()) // the key has the right length
	}
	return x
}
