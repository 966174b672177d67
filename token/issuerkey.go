package token

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"slices"
)

// IssuerKey is what a backend needs to issue tokens for a DS: the token key and
// the DS's public key. The zero value is no key. Compare keys with Equal.
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

// ParseIssuerKey reads the text that Secret gives, with or without white space
// around it. An error wraps ErrMalformed.
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

// Secret gives the key as text of one line, which ParseIssuerKey reads. It is
// empty for the zero key.
func (k IssuerKey) Secret() string {
	if k.IsZero() {
		return ""
	}
	s := k.secrets()
	return issuerKeyText.encode(slices.Concat(s.public[:], s.token[:]))
}

// IsZero reports whether k is no key.
func (k IssuerKey) IsZero() bool { return k.secrets == nil }

// Equal reports whether two keys are the same, in a time that does not tell where
// they differ.
func (k IssuerKey) Equal(other IssuerKey) bool {
	if k.IsZero() || other.IsZero() {
		return k.IsZero() && other.IsZero()
	}
	a, b := k.secrets(), other.secrets()
	return a.public == b.public && subtle.ConstantTimeCompare(a.token[:], b.token[:]) == 1
}

// Public gives the DS's X25519 public key; zeros for the zero key.
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

// MarshalText gives String, so that a dump of a configuration tells no secret;
// UnmarshalText does not read that. It is empty for the zero key.
func (k IssuerKey) MarshalText() ([]byte, error) { return nameText(k.IsZero(), k.String()), nil }
