package seal

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"io"
	"net/netip"
	"time"
)

const (
	// CookieSize is the size of a cookie: 4 bytes of time, 20 of a MAC.
	CookieSize = 24
	// CookieLife is the lifetime of a cookie.
	CookieLife = 10 * time.Second

	cookieTurn = time.Minute // time for which a secret makes new cookies; longer than CookieLife
)

// Cookies makes and checks cookies. With them, a listener validates the address of a hello's sender
// before it spends computation or memory. It stores nothing per cookie. It is not safe for
// concurrent use.
type Cookies struct {
	random   io.Reader
	start    time.Time
	turned   int64                // time at which the current secret was made, in ms since start
	current  hash.Hash            // HMAC-SHA-256 with the current secret
	previous hash.Hash            // HMAC-SHA-256 with the previous secret
	sum      [sha256.Size]byte    // scratch
	text     [4 + 16 + 2 + 8]byte // scratch
}

// NewCookies returns cookies with a new secret. random is the source of this secret and of a new
// one each minute; nil selects crypto/rand. NewCookies and the methods panic if the source fails.
func NewCookies(random io.Reader, now time.Time) *Cookies {
	c := &Cookies{random: cmp.Or(random, rand.Reader), start: now}
	c.turn(0)
	c.turn(0)
	return c
}

// Make returns a cookie for a hello with the given nonce from addr. An IPv4 address and its
// IPv4-mapped form are equal; zones are ignored. It does not allocate.
func (c *Cookies) Make(addr netip.AddrPort, nonce uint64, now time.Time) (cookie [CookieSize]byte) {
	at := c.at(now)
	binary.BigEndian.PutUint32(cookie[:], uint32(at))
	copy(cookie[4:], c.mac(c.current, addr, nonce, uint32(at)))
	return cookie
}

// Check reports whether [Cookies.Make] made the cookie for this address and nonce, no longer than
// [CookieLife] ago. It computes one HMAC and does not allocate.
func (c *Cookies) Check(cookie [CookieSize]byte, addr netip.AddrPort, nonce uint64, now time.Time) bool {
	at, made := c.at(now), binary.BigEndian.Uint32(cookie[:])
	age := int64(uint32(at) - made)
	if age > CookieLife.Milliseconds() {
		return false
	}
	m := c.current
	if at-age < c.turned {
		m = c.previous
	}
	return subtle.ConstantTimeCompare(cookie[4:], c.mac(m, addr, nonce, made)) == 1
}

// at returns the milliseconds from the start until now, and makes a new secret if it is due.
func (c *Cookies) at(now time.Time) int64 {
	at := now.Sub(c.start).Milliseconds()
	if at-c.turned >= cookieTurn.Milliseconds() {
		c.turn(at)
	}
	return at
}

func (c *Cookies) turn(at int64) {
	var secret [32]byte
	_ = must(io.ReadFull(c.random, secret[:]))
	c.previous, c.current = c.current, hmac.New(sha256.New, secret[:])
	c.turned = at
}

func (c *Cookies) mac(m hash.Hash, addr netip.AddrPort, nonce uint64, at uint32) []byte {
	text := &c.text
	ip := addr.Addr().As16()
	binary.BigEndian.PutUint32(text[:], at)
	copy(text[4:], ip[:])
	binary.BigEndian.PutUint16(text[20:], addr.Port())
	binary.BigEndian.PutUint64(text[22:], nonce)
	m.Reset()
	m.Write(text[:])
	return m.Sum(c.sum[:0])[:CookieSize-4]
}
