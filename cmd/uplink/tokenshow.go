package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/token"
)

// shownToken is what --show shows: what anybody sees, and the claims where there is a key.
type shownToken struct {
	ID          string       `json:"id"`
	ServerKey   string       `json:"server_key"`
	Expires     time.Time    `json:"expires"`
	Expired     bool         `json:"expired"`
	SealedBytes int          `json:"sealed_bytes"`
	Claims      *shownClaims `json:"claims,omitempty"`
}

type shownClaims struct {
	ClientID uint64           `json:"client_id,string"`
	Issued   time.Time        `json:"issued"`
	Servers  []netip.AddrPort `json:"servers"`
	UserData []byte           `json:"user_data"`
}

func (o *tokenOptions) runShow(w io.Writer, now time.Time) error {
	t, err := token.Parse(o.show)
	if err != nil {
		return usageError{fmt.Errorf("--show: %w", err)}
	}
	shown := &shownToken{ID: t.ID().String(), ServerKey: keyText(t.ServerKey()), Expires: t.Expires(), SealedBytes: len(t.Sealed())}
	if o.key != "" {
		if err := shown.open(t, o.key); err != nil {
			return err
		}
	}
	shown.Expired = !now.Before(shown.Expires)
	if o.json {
		return encodeJSON(w, shown)
	}
	_, err = io.WriteString(w, shown.text(now))
	return err
}

// open adds what is sealed. Of the two times of expiry it is the sealed one that counts.
func (s *shownToken) open(t token.Token, path string) error {
	key, err := loadKey(path, token.ParseKey)
	if err != nil {
		return hintedError{err, "only the server's key opens a token; leave --key out to see the rest"}
	}
	c, _, err := key.Open(t.Sealed())
	switch {
	case err != nil && t.ServerKey() != key.Public():
		return fmt.Errorf("--key %s: the token is for the server with public key %s, this is the key of %s", path, s.ServerKey, keyText(key.Public()))
	case err != nil:
		return fmt.Errorf("--key %s: %w", path, err)
	}
	s.Expires = c.Expires
	s.Claims = &shownClaims{c.ClientID, c.Issued, c.Servers, c.UserData}
	return nil
}

func (s *shownToken) text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	line("id", "%s", s.ID)
	line("server key", "%s", s.ServerKey)
	line("expires", "%s, %s", timeText(s.Expires), untilText(s.Expires.Sub(now)))
	if s.Claims == nil {
		line("sealed", "%d bytes, which the server's key as --key opens", s.SealedBytes)
		return b.String()
	}
	line("client", "%d", s.Claims.ClientID)
	line("issued", "%s, to live %v", timeText(s.Claims.Issued), s.Expires.Sub(s.Claims.Issued))
	for _, server := range s.Claims.Servers {
		line("server", "%v", server)
	}
	line("user data", "%s", dataText(s.Claims.UserData))
	return b.String()
}

func timeText(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

func untilText(d time.Duration) string {
	if d <= 0 {
		return fmt.Sprintf("expired %v ago", -d.Round(time.Second))
	}
	return fmt.Sprintf("in %v", d.Round(time.Second))
}

// dataText writes what is text as text, quoted, and else in hex.
func dataText(data []byte) string {
	switch {
	case len(data) == 0:
		return "none"
	case utf8.Valid(data) && !strings.ContainsFunc(string(data), unicode.IsControl):
		return fmt.Sprintf("%q", data)
	}
	return fmt.Sprintf("%d bytes, in hex %x", len(data), data)
}
