package token

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Key is the secret of a DS: an X25519 private key, which authenticates it to clients, and the
// token key, which it shares with the backend. The zero value is no key. Compare keys with Equal.
// Several servers may have the same key; a token is still valid only for the addresses that it
// names.
type Key struct{ holder[Key] }

// IssuerKey is the secret of a backend that issues tokens for a DS: the token key and the DS's
// public key. The zero value is no key. Compare keys with Equal.
type IssuerKey struct{ holder[IssuerKey] }

// holder implements the methods of both keys; K is the key that embeds it.
type holder[K any] struct {
	// secrets is a function, nil for no key. A function hides the contents when a struct with an
	// unexported Key is printed, because fmt calls no methods of unexported fields. It also
	// prevents ==.
	secrets func() *secrets
}

// secrets are the contents of a key. They never change. The private key of an issuer key is zero.
type secrets struct {
	private, public, token [32]byte
	id                     KeyID
}

// KeyID identifies a key among the keys of a server. It is not secret: tokens and hellos contain
// it.
type KeyID [4]byte

// String returns 8 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

func hold[K any](s secrets) holder[K] {
	sum := sha256.Sum256(slices.Concat([]byte("uplink key id"), s.public[:], s.token[:]))
	s.id = KeyID(sum[:4])
	return holder[K]{func() *secrets { return &s }}
}

// NewKey makes a key from the system's source of random bytes.
func NewKey() (Key, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("token: new key: %w", err)
	}
	var tokenKey [32]byte
	if _, err := rand.Read(tokenKey[:]); err != nil {
		return Key{}, fmt.Errorf("token: new key: %w", err)
	}
	return newKey([32]byte(private.Bytes()), tokenKey), nil
}

func newKey(private, tokenKey [32]byte) Key {
	x, err := ecdh.X25519().NewPrivateKey(private[:])
	if err != nil {
		panic("token: " + err.Error()) // any 32 bytes are a private key
	}
	return Key{hold[Key](secrets{private: private, public: [32]byte(x.PublicKey().Bytes()), token: tokenKey})}
}

func newIssuerKey(public, tokenKey [32]byte) IssuerKey {
	return IssuerKey{hold[IssuerKey](secrets{public: public, token: tokenKey})}
}

// ParseKey parses the text of Secret, with or without white space around it. Errors wrap
// ErrMalformed.
func ParseKey(text string) (Key, error) { return parseHalves(&keyText, text, newKey) }

// ParseIssuerKey parses the text of Secret, with or without white space around it. Errors wrap
// ErrMalformed.
func ParseIssuerKey(text string) (IssuerKey, error) {
	return parseHalves(&issuerKeyText, text, newIssuerKey)
}

func parseHalves[K any](form *textForm, text string, make func(a, b [32]byte) K) (k K, err error) {
	b, err := form.decode(text)
	if err == nil {
		k = make([32]byte(b[:32]), [32]byte(b[32:]))
	}
	return k, err
}

// UnmarshalText is ParseKey, for encoders and flags.
func (k *Key) UnmarshalText(text []byte) error { return unmarshal(k, ParseKey, text) }

// UnmarshalText is ParseIssuerKey, for encoders and flags.
func (k *IssuerKey) UnmarshalText(text []byte) error { return unmarshal(k, ParseIssuerKey, text) }

// unmarshal sets v to the result of parse, unless parse fails.
func unmarshal[T any](v *T, parse func(string) (T, error), text []byte) error {
	parsed, err := parse(string(text))
	if err == nil {
		*v = parsed
	}
	return err
}

// Secret returns the key as a line of text for ParseKey. It is empty for the zero key.
func (k Key) Secret() string {
	if k.IsZero() {
		return ""
	}
	s := k.secrets()
	return keyText.encode(slices.Concat(s.private[:], s.token[:]))
}

// Secret returns the key as a line of text for ParseIssuerKey. It is empty for the zero key.
func (k IssuerKey) Secret() string {
	if k.IsZero() {
		return ""
	}
	s := k.secrets()
	return issuerKeyText.encode(slices.Concat(s.public[:], s.token[:]))
}

// Private returns the X25519 private key, for the handshake; zeros for the zero key.
func (k Key) Private() [32]byte { return k.get().private }

// Issuer returns the part of the key for the backend.
func (k Key) Issuer() IssuerKey {
	if k.IsZero() {
		return IssuerKey{}
	}
	s := k.secrets()
	return newIssuerKey(s.public, s.token)
}

// Equal reports whether two keys are the same, in constant time.
func (k Key) Equal(other Key) bool { return k.equal(other.holder) }

// Equal reports whether two keys are the same, in constant time.
func (k IssuerKey) Equal(other IssuerKey) bool { return k.equal(other.holder) }

func (h holder[K]) equal(other holder[K]) bool {
	a, b := h.get(), other.get()
	same := subtle.ConstantTimeCompare(a.private[:], b.private[:]) & subtle.ConstantTimeCompare(a.public[:], b.public[:])
	return same&subtle.ConstantTimeCompare(a.token[:], b.token[:]) == 1 && h.IsZero() == other.IsZero()
}

func (h holder[K]) get() secrets {
	if h.IsZero() {
		return secrets{}
	}
	return *h.secrets()
}

// IsZero reports whether the key is the zero value.
func (h holder[K]) IsZero() bool { return h.secrets == nil }

// Public returns the X25519 public key of the server; zeros for the zero key. It is not secret.
func (h holder[K]) Public() [32]byte { return h.get().public }

// ID returns the ID of the key. The server's key and the issuer's key have the same ID. It is zeros
// for the zero key.
func (h holder[K]) ID() KeyID { return h.get().id }

// String names the key by the first bytes of the server's public key.
func (h holder[K]) String() string {
	kind := fmt.Sprintf("%T", *new(K))
	switch public := h.Public(); public {
	case [32]byte{}:
		return kind + "(none)"
	case Development().Public():
		return kind + "(development)"
	default:
		return kind + "(" + base64.RawURLEncoding.EncodeToString(public[:6]) + "...)"
	}
}

// GoString is String.
func (h holder[K]) GoString() string { return h.String() }

// Format writes String, whatever the verb.
func (h holder[K]) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(h.String())) }

// LogValue is String.
func (h holder[K]) LogValue() slog.Value { return slog.StringValue(h.String()) }

// MarshalText returns String, so that a dump of a configuration reveals no secret; UnmarshalText
// does not accept it. It is empty for the zero key.
func (h holder[K]) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// Development returns a published key. Both ends use it on loopback addresses if no key is
// configured; a listener accepts it only there. It protects nothing.
func Development() Key { return development() }

var development = sync.OnceValue(func() Key {
	return newKey(sha256.Sum256([]byte("uplink development: private key")),
		sha256.Sum256([]byte("uplink development: token key")))
})
