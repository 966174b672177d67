package token

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Key is the secret of a DS: an X25519 private key, which authenticates it to clients, and the
// token key, which it shares with the backend. The zero value is no key. Compare keys with Equal.
// Several servers may have the same key; a token is still valid only for the addresses that it
// names.
type Key struct {
	// A function, nil for no key: printing a struct with an unexported Key calls no method of it,
	// and would print the contents of fields and pointers. It also prevents ==.
	secrets func() *secrets
}

// secrets is never changed once a key has it.
type secrets struct {
	private, public, token [32]byte
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
	s := &secrets{private: private, public: [32]byte(x.PublicKey().Bytes()), token: tokenKey}
	return Key{func() *secrets { return s }}
}

// ParseKey parses the text of Secret, with or without white space around it. Errors wrap
// ErrMalformed.
func ParseKey(text string) (Key, error) {
	b, err := keyText.decode(text)
	if err != nil {
		return Key{}, err
	}
	return newKey([32]byte(b[:32]), [32]byte(b[32:])), nil
}

// UnmarshalText is ParseKey, for encoders and flags.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// Secret returns the key as a line of text for ParseKey. It is empty for the zero key.
func (k Key) Secret() string {
	if k.IsZero() {
		return ""
	}
	s := k.secrets()
	return keyText.encode(slices.Concat(s.private[:], s.token[:]))
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.secrets == nil }

// Equal reports whether two keys are the same, in constant time.
func (k Key) Equal(other Key) bool {
	if k.IsZero() || other.IsZero() {
		return k.IsZero() && other.IsZero()
	}
	a, b := k.secrets(), other.secrets()
	return subtle.ConstantTimeCompare(a.private[:], b.private[:])&subtle.ConstantTimeCompare(a.token[:], b.token[:]) == 1
}

// Public returns the X25519 public key of the server; zeros for the zero key. It is not secret.
func (k Key) Public() [32]byte {
	if k.IsZero() {
		return [32]byte{}
	}
	return k.secrets().public
}

// Private returns the X25519 private key, for the handshake; zeros for the zero key.
func (k Key) Private() [32]byte {
	if k.IsZero() {
		return [32]byte{}
	}
	return k.secrets().private
}

// Issuer returns the part of the key for the backend.
func (k Key) Issuer() IssuerKey {
	if k.IsZero() {
		return IssuerKey{}
	}
	s := k.secrets()
	return newIssuerKey(s.public, s.token)
}

// String names the key by the first bytes of its public half.
func (k Key) String() string { return name("token.Key", k.Public()) }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Format writes String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String, so that a dump of a configuration reveals no secret; UnmarshalText
// does not accept it. It is empty for the zero key.
func (k Key) MarshalText() ([]byte, error) { return nameText(k.IsZero(), k.String()), nil }

// name returns the name of a key for output.
func name(kind string, public [32]byte) string {
	switch public {
	case [32]byte{}:
		return kind + "(none)"
	case Development().Public():
		return kind + "(development)"
	}
	return kind + "(" + base64.RawURLEncoding.EncodeToString(public[:6]) + "...)"
}

func nameText(zero bool, name string) []byte {
	if zero {
		return nil
	}
	return []byte(name)
}

// IssuerKey is the secret of a backend that issues tokens for a DS: the token key and the DS's
// public key. The zero value is no key. Compare keys with Equal.
type IssuerKey struct {
	secrets func() *issuerSecrets // a function for the same reasons as in Key
}

// issuerSecrets is never changed once a key has it.
type issuerSecrets struct {
	public, token [32]byte
}

func newIssuerKey(public, tokenKey [32]byte) IssuerKey {
	s := &issuerSecrets{public: public, token: tokenKey}
	return IssuerKey{func() *issuerSecrets { return s }}
}

// ParseIssuerKey parses the text of Secret, with or without white space around it. Errors wrap
// ErrMalformed.
func ParseIssuerKey(text string) (IssuerKey, error) {
	b, err := issuerKeyText.decode(text)
	if err != nil {
		return IssuerKey{}, err
	}
	return newIssuerKey([32]byte(b[:32]), [32]byte(b[32:])), nil
}

// UnmarshalText is ParseIssuerKey, for encoders and flags.
func (k *IssuerKey) UnmarshalText(text []byte) error {
	parsed, err := ParseIssuerKey(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// Secret returns the key as a line of text for ParseIssuerKey. It is empty for the zero key.
func (k IssuerKey) Secret() string {
	if k.IsZero() {
		return ""
	}
	s := k.secrets()
	return issuerKeyText.encode(slices.Concat(s.public[:], s.token[:]))
}

// IsZero reports whether k is no key.
func (k IssuerKey) IsZero() bool { return k.secrets == nil }

// Equal reports whether two keys are the same, in constant time.
func (k IssuerKey) Equal(other IssuerKey) bool {
	if k.IsZero() || other.IsZero() {
		return k.IsZero() && other.IsZero()
	}
	a, b := k.secrets(), other.secrets()
	return a.public == b.public && subtle.ConstantTimeCompare(a.token[:], b.token[:]) == 1
}

// Public returns the DS's X25519 public key; zeros for the zero key.
func (k IssuerKey) Public() [32]byte {
	if k.IsZero() {
		return [32]byte{}
	}
	return k.secrets().public
}

// String names the key by the first bytes of the DS's public key.
func (k IssuerKey) String() string { return name("token.IssuerKey", k.Public()) }

// GoString is String.
func (k IssuerKey) GoString() string { return k.String() }

// Format writes String, whatever the verb.
func (k IssuerKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue is String.
func (k IssuerKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String, so that a dump of a configuration reveals no secret; UnmarshalText
// does not accept it. It is empty for the zero key.
func (k IssuerKey) MarshalText() ([]byte, error) { return nameText(k.IsZero(), k.String()), nil }

// Development returns a published key. Both ends use it on loopback addresses if no key is
// configured; a listener accepts it only there. It protects nothing.
func Development() Key { return development() }

var development = sync.OnceValue(func() Key {
	return newKey(sha256.Sum256([]byte("uplink development: private key")),
		sha256.Sum256([]byte("uplink development: token key")))
})
