package token

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"
)

// Token is what a client needs to connect: the server's public key, when the token
// expires, and the claims, sealed so that only the server reads them. It is good
// for one session; whoever has it can begin that. The zero value is no token.
// Tokens may be compared with ==.
type Token struct {
	body string // public key, expiry, sealed claims
}

const tokenHeader = 32 + 8

// Issue makes a token. Claims that are beyond their limits are an error that names
// the field; a zero key is ErrNoKey.
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
	body := make([]byte, 0, tokenHeader+MaxSealed)
	public := k.Public()
	body = append(body, public[:]...)
	body = binary.LittleEndian.AppendUint64(body, uint64(c.Expires.UnixMilli()))
	return Token{string(append(body, seal(k, &c, nonce)...))}, nil
}

// Parse reads the text that String gives, with or without white space around it.
// An error wraps ErrMalformed. What is sealed is not looked at: only the server
// can.
func Parse(text string) (Token, error) {
	b, err := tokenText.decode(text)
	if err != nil {
		return Token{}, err
	}
	if _, err := parseTime(b[32:]); err != nil {
		return Token{}, malformed("a token: Expires: %v", err)
	}
	return Token{string(b)}, nil
}

// UnmarshalText is Parse, for encoders and flags.
func (t *Token) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// MarshalText gives String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String gives the token as text of one line, at most 706 characters that need no
// escape in URLs or JSON; Parse reads it. It is empty for the zero token.
func (t Token) String() string {
	if t.IsZero() {
		return ""
	}
	return tokenText.encode([]byte(t.body))
}

// LogValue gives ID and expiry: a log is no place for what lets somebody in.
func (t Token) LogValue() slog.Value {
	if t.IsZero() {
		return slog.StringValue("token.Token(none)")
	}
	return slog.GroupValue(slog.String("id", t.ID().String()), slog.Time("expires", t.Expires()))
}

// IsZero reports whether t is no token.
func (t Token) IsZero() bool { return t.body == "" }

// ServerKey gives the X25519 public key of the server; zeros for the zero token.
func (t Token) ServerKey() (public [32]byte) {
	if !t.IsZero() {
		copy(public[:], t.body)
	}
	return public
}

// Expires tells a client when the token expires, in UTC, without the key. The
// server goes by the time that is sealed. It is the zero time for the zero token.
func (t Token) Expires() time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.LittleEndian.Uint64([]byte(t.body[32:tokenHeader])))).UTC()
}

// Sealed gives a copy of the sealed claims, for the server; nil for the zero token.
func (t Token) Sealed() []byte {
	if t.IsZero() {
		return nil
	}
	return []byte(t.body[tokenHeader:])
}

// ID gives the token's name, the same that Key.Open gives, if nobody altered the
// token; zeros for the zero token.
func (t Token) ID() (id ID) {
	if !t.IsZero() {
		copy(id[:], t.body[tokenHeader+1:])
	}
	return id
}
