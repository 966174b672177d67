package token

import (
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrMalformed means that a text or encrypted bytes are invalid; the error that wraps it describes
// where. Errors never contain the input itself.
var ErrMalformed = errors.New("malformed token or key")

// ErrNoKey means that a key is required, and none was given.
var ErrNoKey = errors.New("no key: make one with uplink keygen, or token.NewKey")

// ErrNoToken means that a client dials another machine without a connect token.
var ErrNoToken = errors.New("no connect token: get one from the game's backend, or make one for tests with uplink token")

// Errors of a server that refuses a token. A client receives them over an authenticated handshake.
var (
	// ErrWrongKey means that a token was issued with a key that the server does not have, or was
	// altered.
	ErrWrongKey = errors.New("the connect token was issued with another key than the server's, or altered")
	// ErrExpired means that [Claims.Expires] has passed.
	ErrExpired = errors.New("the connect token has expired, get a new one")
	// ErrUsed means that the token has started a session before.
	ErrUsed = errors.New("the connect token has been used, get a new one for each connection")
	// ErrWrongServer means that [Claims.Servers] contains no address of the server.
	ErrWrongServer = errors.New("the connect token is for another server address")
	// ErrStale means that the token was issued before the server started, so the server cannot know
	// whether it was used.
	ErrStale = errors.New("the connect token is older than the server, get a new one")
	// ErrAhead means that [Claims.Issued] is more than a minute ahead of the server's clock.
	ErrAhead = errors.New("the connect token comes from a clock that is ahead of the server's, set both clocks")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

const (
	// version is the first byte of the sealed part, and authenticated with it.
	version = 2

	nonceLen  = chacha20poly1305.NonceSizeX
	minHead   = 1 + len(KeyID{}) + 1 // version, key id, size of the route id
	sealedMin = minHead + nonceLen + chacha20poly1305.Overhead
	minSealed = sealedMin + minClaims

	// maxSealed is the maximum size of the sealed part of a token in bytes.
	maxSealed = sealedMin + MaxRoute + maxClaims
)

// ID identifies a token. It is not secret.
type ID [16]byte

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// seal encrypts valid claims with the nonce: version, key id, route id, nonce, ciphertext, tag.
func seal(k IssuerKey, c *Claims, nonce *[nonceLen]byte) []byte {
	plain := c.append(make([]byte, 0, maxClaims))
	b := make([]byte, 0, sealedMin+len(c.Route)+len(plain))
	s := k.secrets()
	b = append(append(b, version), s.id[:]...)
	b = append(append(b, byte(len(c.Route))), c.Route...)
	associated := associated(b, &s.public)
	return newAEAD(&s.token).Seal(append(b, nonce[:]...), nonce[:], plain, associated)
}

// Open decrypts the sealed part of a token, as received from a client. It does not modify its
// input. It returns the claims, which are within all limits of Claims, and the token's ID. The
// error wraps ErrWrongKey or ErrMalformed; for the zero key it is ErrNoKey. The caller has to
// check the time and the server address.
func (k Key) Open(sealed []byte) (Claims, ID, error) {
	switch {
	case k.IsZero():
		return Claims{}, ID{}, ErrNoKey
	case len(sealed) < minSealed || len(sealed) > maxSealed:
		return Claims{}, ID{}, malformed("sealed: %d bytes, want %d to %d", len(sealed), minSealed, maxSealed)
	}
	head, err := headOf(sealed)
	if err != nil {
		return Claims{}, ID{}, err
	}
	nonce := sealed[len(head) : len(head)+nonceLen]
	s := k.secrets()
	if id := KeyID(head[1:]); id != s.id {
		return Claims{}, ID{}, fmt.Errorf("%w: it names the key %v, not %v", ErrWrongKey, id, s.id)
	}
	plain, err := newAEAD(&s.token).Open(nil, nonce, sealed[len(head)+nonceLen:], associated(head, &s.public))
	if err != nil {
		return Claims{}, ID{}, ErrWrongKey
	}
	c, err := parseClaims(plain)
	if err != nil {
		return Claims{}, ID{}, err
	}
	if len(head) > minHead {
		c.Route = bytes.Clone(head[minHead:])
	}
	return c, ID(nonce[:len(ID{})]), nil
}

// headOf returns the clear part of encrypted bytes: version, key id, route id. sealed has at least
// minSealed bytes.
func headOf(sealed []byte) ([]byte, error) {
	size := int(sealed[minHead-1])
	switch {
	case sealed[0] != version:
		return nil, malformed("sealed: version %d, want %d: was it issued by another version of uplink?", sealed[0], version)
	case size > MaxRoute || len(sealed) < minSealed+size:
		return nil, malformed("sealed: a route id of %d bytes in %d, at most %d", size, len(sealed), MaxRoute)
	}
	return sealed[:minHead+size], nil
}

func associated(head []byte, public *[32]byte) []byte {
	return slices.Concat([]byte("uplink token"), head, public[:])
}

func newAEAD(key *[32]byte) cipher.AEAD {
	x, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		panic("token: " + err.Error()) // the key has the right length
	}
	return x
}
