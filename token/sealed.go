package token

import (
	"crypto/cipher"
	"encoding/hex"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	// version is the first byte of what is sealed, and bound to it.
	version = 1

	nonceLen  = chacha20poly1305.NonceSizeX
	sealedMin = 1 + nonceLen + chacha20poly1305.Overhead
	minSealed = sealedMin + minClaims

	// MaxSealed is the most bytes that the sealed part of a token has.
	MaxSealed = sealedMin + maxClaims
)

// ID names a token: no other has it. It is no secret.
type ID [16]byte

// String gives 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// seal seals claims, which were checked, under the nonce: version, nonce, ciphertext, tag.
func seal(k IssuerKey, c *Claims, nonce *[nonceLen]byte) []byte {
	plain := c.append(make([]byte, 0, maxClaims))
	b := make([]byte, 0, sealedMin+len(plain))
	b = append(append(b, version), nonce[:]...)
	s := k.secrets()
	return newAEAD(&s.token).Seal(b, nonce[:], plain, associated(&s.public))
}

// Open opens what Token.Sealed gives, as it came from a client: at most MaxSealed
// bytes, which are not changed. It gives the claims, which keep all limits of
// Claims, and the token's ID, for a table of those that were used. An error is
// ErrWrongKey or wraps ErrMalformed; for the zero key it is ErrNoKey. Whether the
// claims hold now and here is for the caller to check.
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

// associated is what is authenticated beside the claims: that this is a token, its version, and the server that the
// client is going to trust for it.
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
