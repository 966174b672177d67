package token

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"
)

// Token is the connect token of a client: the server's public key, the expiry, and the claims,
// encrypted for the server. It admits its holder to one session. The zero value is no token. Tokens
// may be compared with ==.
type Token struct {
	body string // public key, expiry, sealed claims
}

const tokenHeader = 32 + 8

// Issue returns a new token. Claims that exceed their limits are an error with the field's name; a
// zero key is ErrNoKey.
func Issue(k IssuerKey, c Claims) (Token, error) {
	var nonce [nonceLen]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return Token{}, fmt.Errorf("token: issue: %w", err)
	}
	return issue(k, c, &nonce)
}

func issue(k IssuerKey, c Claims, nonce *[nonceLen]byte) (Token, error) {
	if k.IsZero() {
		return Token{}, ErrNoKey
	}
	if c.Issued.IsZero() {
		c.Issued = time.Now()
	}
	if err := c.check(); err != nil {
		return Token{}, fmt.Errorf("token: issue: claims: %w", err)
	}
	body := make([]byte, 0, tokenHeader+maxSealed)
	public := k.Public()
	body = append(body, public[:]...)
	body = binary.LittleEndian.AppendUint64(body, uint64(c.Expires.UnixMilli()))
	return Token{string(append(body, seal(k, &c, nonce)...))}, nil
}

// Parse parses the text of String, with or without white space around it. Errors wrap ErrMalformed.
// It cannot check the encrypted claims.
func Parse(text string) (Token, error) {
	b, err := tokenText.decode(text)
	if err != nil {
		return Token{}, err
	}
	if _, err := parseTime(b[32:]); err != nil {
		return Token{}, malformed("a token: Expires: %v", err)
	}
	if _, err := headOf(b[tokenHeader:]); err != nil {
		return Token{}, err
	}
	return Token{string(b)}, nil
}

// UnmarshalText is Parse, for encoders and flags.
func (t *Token) UnmarshalText(text []byte) error { return unmarshal(t, Parse, text) }

// MarshalText returns String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the token as a line of text for Parse, at most 778 characters, none of which needs
// an escape in URLs or JSON. It is empty for the zero token.
func (t Token) String() string {
	if t.IsZero() {
		return ""
	}
	return tokenText.encode([]byte(t.body))
}

// LogValue returns ID and expiry, since the token itself is a secret.
func (t Token) LogValue() slog.Value {
	if t.IsZero() {
		return slog.StringValue("token.Token(none)")
	}
	return slog.GroupValue(slog.String("id", t.ID().String()), slog.Time("expires", t.Expires()))
}

// IsZero reports whether t is no token.
func (t Token) IsZero() bool { return t.body == "" }

// ServerKey returns the X25519 public key of the server; zeros for the zero token.
func (t Token) ServerKey() (public [32]byte) {
	copy(public[:], t.body)
	return public
}

// KeyID returns the ID of the key that issued the token; zeros for the zero token.
func (t Token) KeyID() (id KeyID) {
	if !t.IsZero() {
		copy(id[:], t.body[tokenHeader+1:])
	}
	return id
}

// Route returns a copy of [Claims.Route]; nil if it is empty.
func (t Token) Route() []byte {
	if t.IsZero() || t.body[tokenHeader+minHead-1] == 0 {
		return nil
	}
	size := int(t.body[tokenHeader+minHead-1])
	return []byte(t.body[tokenHeader+minHead:][:size])
}

// Expires returns when the token expires, in UTC, for the client. The server uses the encrypted
// time. It is the zero time for the zero token.
func (t Token) Expires() time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.LittleEndian.Uint64([]byte(t.body[32:tokenHeader])))).UTC()
}

// Sealed returns a copy of the encrypted claims, for the server; nil for the zero token.
func (t Token) Sealed() []byte {
	if t.IsZero() {
		return nil
	}
	return []byte(t.body[tokenHeader:])
}

// ID returns the ID of the token; zeros for the zero token. Key.Open returns the same ID, unless
// the token was altered.
func (t Token) ID() (id ID) {
	if !t.IsZero() {
		copy(id[:], t.body[tokenHeader+minHead+len(t.Route()):])
	}
	return id
}
