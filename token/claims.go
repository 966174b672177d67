package token

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	// MaxServers is the maximum number of servers in a token.
	MaxServers = 8
	// MaxUserData is the maximum size of the game's own data in a token, in bytes.
	MaxUserData = 256
	// MaxRoute is the maximum size of a route id, in bytes.
	MaxRoute = 16
	// MaxLifetime is the longest time from a token's issue to its expiry. A server remembers each
	// used token until 2 hours after its expiry.
	MaxLifetime = 24 * time.Hour
)

// Claims are the contents of a token. The issuer encrypts all but Route for the DS; the client
// cannot read them. Times are in UTC, in whole milliseconds since 1970.
type Claims struct {
	// ClientID is the number by which the game knows the player.
	ClientID uint64
	// Issued is when the token was issued. Issue uses the current time if it is zero, and rounds
	// down.
	Issued time.Time
	// Expires is the first time at which the token no longer starts a session;
	// existing sessions continue. It is after Issued, by MaxLifetime at most.
	// Issue rounds down.
	Expires time.Time
	// Servers are the server addresses for which the token is valid, as clients dial them:
	// 1 to 8, each with a port, without zone. Issue unmaps IPv4 in IPv6.
	Servers []netip.AddrPort
	// UserData is up to 256 bytes from the backend to the game on the DS.
	UserData []byte
	// Handover authorizes a handover. It is the SHA-256 of a secret and of the data that another
	// server hands over to this one through the client. The other server sends the secret to the
	// client when it releases the player. All zeros if the token is not for a handover.
	Handover [sha256.Size]byte
	// Route is up to 16 bytes for proxies: the client sends them in clear, and a proxy finds the
	// server by them. Neither a client nor a proxy can change them without invalidating the token.
	Route []byte
}

// maxMilli is the last millisecond of the year 9999, the latest time with a text form.
const maxMilli = 253_402_300_799_999

const (
	minClaims = 8 + 8 + 8 + 1 + (1 + 4 + 2) + 1
	maxClaims = 8 + 8 + 8 + 1 + MaxServers*(1+16+2) + 1 + sha256.Size + MaxUserData
)

// check checks the claims. Issued must be set. An error names the field.
func (c *Claims) check() error {
	lifetime := c.Expires.UnixMilli() - c.Issued.UnixMilli()
	switch {
	case !representable(c.Issued):
		return field("Issued", "%v is not in the years 1970 to 9999", c.Issued)
	case c.Expires.IsZero():
		return field("Expires", "zero: want a time within %v after Issued", MaxLifetime)
	case !representable(c.Expires):
		return field("Expires", "%v is not in the years 1970 to 9999", c.Expires)
	case lifetime <= 0:
		return field("Expires", "%s is not a millisecond or more after Issued, %s", c.Expires.Format(time.RFC3339Nano), c.Issued.Format(time.RFC3339Nano))
	case lifetime > MaxLifetime.Milliseconds():
		return field("Expires", "%v after Issued, at most %v", c.Expires.Sub(c.Issued), MaxLifetime)
	case len(c.Servers) < 1 || len(c.Servers) > MaxServers:
		return field("Servers", "%d addresses, want 1 to %d", len(c.Servers), MaxServers)
	case len(c.Route) > MaxRoute:
		return field("Route", "%d bytes, at most %d", len(c.Route), MaxRoute)
	case len(c.UserData) > MaxUserData:
		return field("UserData", "%d bytes, at most %d", len(c.UserData), MaxUserData)
	}
	for i, s := range c.Servers {
		if err := checkServer(s); err != nil {
			return field(fmt.Sprintf("Servers[%d]", i), "%v", err)
		}
	}
	return nil
}

func field(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
}

func representable(t time.Time) bool {
	return !t.Before(time.UnixMilli(0)) && t.Before(time.UnixMilli(maxMilli+1))
}

func checkServer(s netip.AddrPort) error {
	switch a := s.Addr(); {
	case !a.IsValid():
		return errors.New("no address")
	case a.Zone() != "":
		return fmt.Errorf("%v has a zone, which means nothing elsewhere", s)
	case a.Unmap().IsUnspecified():
		return fmt.Errorf("%v is where a server listens; want the address that clients dial", s)
	case s.Port() == 0:
		return fmt.Errorf("%v has no port", s)
	}
	return nil
}

func (c *Claims) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, c.ClientID)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Issued.UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Expires.UnixMilli()))
	b = append(b, byte(len(c.Servers)))
	for _, s := range c.Servers {
		b = appendServer(b, s)
	}
	if c.Handover == ([sha256.Size]byte{}) {
		b = append(b, 0)
	} else {
		b = append(append(b, sha256.Size), c.Handover[:]...)
	}
	return append(b, c.UserData...)
}

func appendServer(b []byte, s netip.AddrPort) []byte {
	a := s.Addr().Unmap()
	family := byte(6)
	if a.Is4() {
		family = 4
	}
	return binary.LittleEndian.AppendUint16(append(append(b, family), a.AsSlice()...), s.Port())
}

// parseClaims is the inverse of append. It accepts the same claims as check. UserData is part of b.
func parseClaims(b []byte) (c Claims, err error) {
	if len(b) < minClaims || len(b) > maxClaims {
		return Claims{}, malformed("claims: %d bytes, want %d to %d", len(b), minClaims, maxClaims)
	}
	c.ClientID = binary.LittleEndian.Uint64(b)
	if c.Issued, err = parseTime(b[8:]); err != nil {
		return Claims{}, malformed("claims: Issued: %v", err)
	}
	if c.Expires, err = parseTime(b[16:]); err != nil {
		return Claims{}, malformed("claims: Expires: %v", err)
	}
	n := int(b[24])
	if n < 1 || n > MaxServers {
		return Claims{}, malformed("claims: Servers: %d addresses, want 1 to %d", n, MaxServers)
	}
	b = b[25:]
	c.Servers = make([]netip.AddrPort, n)
	for i := range c.Servers {
		if c.Servers[i], b, err = parseServer(b); err != nil {
			return Claims{}, malformed("claims: Servers[%d]: %v", i, err)
		}
	}
	if c.Handover, b, err = parseHandover(b); err != nil {
		return Claims{}, malformed("claims: Handover: %v", err)
	}
	if len(b) > 0 {
		c.UserData = b[:len(b):len(b)]
	}
	if err := c.check(); err != nil {
		return Claims{}, malformed("claims: %v", err)
	}
	return c, nil
}

// parseHandover reads the size of a hash, 0 or 32, and the hash.
func parseHandover(b []byte) (hash [sha256.Size]byte, rest []byte, err error) {
	switch {
	case len(b) < 1 || len(b) < 1+int(b[0]):
		return hash, nil, errors.New("cut off")
	case b[0] == 0:
		return hash, b[1:], nil
	case b[0] != sha256.Size:
		return hash, nil, fmt.Errorf("a hash of %d bytes, want 0 or %d", b[0], sha256.Size)
	}
	if copy(hash[:], b[1:]); hash == ([sha256.Size]byte{}) {
		return hash, nil, errors.New("a hash of zeros")
	}
	return hash, b[1+sha256.Size:], nil
}

// parseTime reads milliseconds of at least 8 bytes.
func parseTime(b []byte) (time.Time, error) {
	ms := binary.LittleEndian.Uint64(b)
	if ms > maxMilli {
		return time.Time{}, fmt.Errorf("%d ms since 1970, at most %d", ms, uint64(maxMilli))
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

func parseServer(b []byte) (s netip.AddrPort, rest []byte, err error) {
	size := 0
	if len(b) > 0 {
		switch b[0] {
		case 4:
			size = 4
		case 6:
			size = 16
		default:
			return s, nil, fmt.Errorf("family %d, want 4 or 6", b[0])
		}
	}
	if len(b) < 1+size+2 {
		return s, nil, errors.New("cut off")
	}
	a, _ := netip.AddrFromSlice(b[1 : 1+size])
	if a.Is4In6() {
		return s, nil, errors.New("IPv4 in IPv6, want family 4")
	}
	return netip.AddrPortFrom(a, binary.LittleEndian.Uint16(b[1+size:])), b[1+size+2:], nil
}
